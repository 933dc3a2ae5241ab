// Pairs as a pickle: any bytes, and any behind a good beginning.
#include "base/data_error.h"
#include "data/images/image_format.h"
#include "data/pickled_pairs.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/pickles.h"
#include "tests/support/testdata.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  const std::string pgm = "P5\n1 1\n255\nx";
  std::vector<std::string> all{testing::pickled_pairs({pgm, pgm, pgm, pgm}, {true, false}),
                               "\x80\x02"
                               "cos\nsystem\n(X\x04"};
  for (const char* file : {"python2", "bytes-2", "bytes-5", "numpy1-arrays-2", "numpy2-arrays-4",
                           "numpy2-arrays-5", "numpy1-bools-3", "numpy2-bools-4"}) {
    all.push_back(testing::read_file(testing::testdata(std::string("pairs/") + file + ".bin")));
  }
  return all;
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<DataError>([&] {
    const data::PickledPairs pairs = data::read_pickled_pairs({data, size}, "fuzz");
    fuzz::promise(!pairs.same.empty() && pairs.pictures.size() == 2 * pairs.same.size(),
                  "there are two pictures for each answer");
    for (const auto picture : pairs.pictures) {
      fuzz::promise(data::image_format(picture) != data::ImageFormat::unknown,
                    "pictures begin as pictures");
      unsigned sum = 0;
      for (const std::uint8_t byte : picture) sum += byte;
      fuzz::promise(sum <= 255U * picture.size(), "all bytes can be read");
    }
  });
  return 0;
}
