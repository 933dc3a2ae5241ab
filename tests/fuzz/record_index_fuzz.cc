// The `.idx` of a `.rec`.
#include <sstream>

#include "base/data_error.h"
#include "data/record_file.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  return {"0\t0\n1\t32\n2\t64\n", "3\t8\r\n1\t0\n", "18446744073709551615\t4\n", "1\t4\n1\t8\n"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  constexpr std::uint64_t kBytes = 1 << 20;
  fuzz::reads<DataError>([&] {
    std::istringstream lines{std::string(fuzz::text_of(data, size))};
    const auto entries = data::read_record_index(lines, "fuzz.idx", "fuzz.rec", kBytes);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      fuzz::promise(entries[i].offset < kBytes && entries[i].offset % 4 == 0,
                    "records begin in the file");
      fuzz::promise(i == 0 || entries[i - 1].key < entries[i].key, "keys rise");
    }
  });
  return 0;
}
