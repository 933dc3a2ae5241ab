// Pairs as text, of both forms. What is read is written and read again.
#include <sstream>

#include "base/data_error.h"
#include "data/pairs.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  return {"a.jpg\tb.jpg\t1\nc/d.png\te.png\t0\n", "1\t1\nA_B\t1\t2\nA_B\t1\tC\t22\n",
          "1\nA 1 2\nB 1 C 2"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<DataError>([&] {
    std::istringstream lines{std::string(fuzz::text_of(data, size))};
    const auto pairs = data::read_pairs(lines, "fuzz");
    fuzz::promise(!pairs.empty(), "there is a pair");
    std::istringstream again(data::pairs_text(pairs));
    fuzz::promise(data::read_pairs(again, "again") == pairs, "what is written comes back");
  });
  return 0;
}
