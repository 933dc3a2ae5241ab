// A zip archive's directory: what it tells of lies in the file, and no two entries share a byte.
#include <sstream>

#include "base/files/file_error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/torch_files.h"
#include "train/files/zip_directory.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  const std::vector<testing::ZippedEntry> entries{
      {"w/data.pkl", "}.", "FB\x01Z"}, {"w/data/0", "12345678"}, {"w/version", "3\n"}};
  return {testing::zip_of(entries), testing::zip_of(entries, true), testing::zip_of({})};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<FileError>([&] {
    std::istringstream archive{std::string(fuzz::text_of(data, size))};
    std::uint64_t end = 0;
    for (const train::ZipEntry& entry : train::read_zip_directory(archive, size, "fuzz")) {
      fuzz::promise(entry.begin >= end && entry.begin <= size, "entries follow each other");
      fuzz::promise(entry.bytes <= size - entry.begin, "an entry lies in the file");
      end = entry.begin + entry.bytes;
    }
  });
  return 0;
}
