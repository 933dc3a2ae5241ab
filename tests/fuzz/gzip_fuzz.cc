// gzip streams: whatever is unpacked, it is no more than at_most(), in pieces of any size.
#include <algorithm>
#include <array>

#include "base/data_error.h"
#include "data/byte_source.h"
#include "tests/data/idx_files.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  using testing::gzip;
  const std::string text = gzip("the quick brown fox jumps over the lazy dog, the lazy dog");
  return {text,
          gzip(""),
          text + gzip("another member"),
          gzip(std::string(100'000, 'a')),
          text.substr(0, text.size() - 4),
          text + "garbage",
          "not packed at all"};
}

namespace {

std::vector<std::uint8_t> read_all(std::span<const std::uint8_t> content, std::size_t piece) {
  const auto source = data::open_bytes(content, "fuzz");
  std::vector<std::uint8_t> all, buffer(piece);
  for (std::size_t got = piece; got == piece;) {
    got = source->read(buffer);
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got));
    promise(all.size() <= source->at_most(), "no more than at_most() comes out");
  }
  return all;
}

}  // namespace
}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const std::span content(data, size);
  std::vector<std::uint8_t> large, small;
  const bool reads_large =
      fuzz::reads<DataError>([&] { large = fuzz::read_all(content, 1 << 16); });
  const bool reads_small = fuzz::reads<DataError>([&] { small = fuzz::read_all(content, 1000); });
  fuzz::promise(reads_large == reads_small && large == small,
                "the size of the pieces changes nothing");
  return 0;
}
