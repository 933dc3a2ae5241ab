// IDX, gzipped or not: read as images, as labels, and scanned.
#include <algorithm>

#include "base/data_error.h"
#include "data/idx.h"
#include "tests/data/idx_files.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

using testing::gzip;
using testing::idx;
using testing::idx_header;

std::vector<std::string> seeds() {
  return {idx({2, 3, 4}),
          idx({7}, 10),
          idx({0, 28, 28}),
          idx({2, 2}),
          gzip(idx({2, 3, 4})),
          gzip(idx({7}, 10)) + gzip(""),
          idx_header(13, {2}) + "12345678",
          idx_header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}),
          gzip(idx_header(8, {0x00FFFFFF, 128, 128}))};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const std::span content(data, size);
  std::vector<std::uint8_t> scanned;
  const bool scans = fuzz::reads<DataError>([&] {
    data::scan_idx(*data::open_bytes(content, "fuzz"), "fuzz", [&](const auto&, auto piece) {
      scanned.insert(scanned.end(), piece.begin(), piece.end());
    });
  });
  for (const int dimensions : {1, 3}) {
    data::IdxArray array;
    const bool read = fuzz::reads<DataError>(
        [&] { array = data::read_idx(*data::open_bytes(content, "fuzz"), "fuzz", dimensions); });
    if (!read) continue;
    fuzz::promise(scans && scanned == array.values, "scanning sees what reading keeps");
    std::int64_t product = 1;
    for (const std::int64_t extent : array.sizes) product *= extent;
    fuzz::promise(static_cast<std::int64_t>(array.values.size()) == product,
                  "there are as many values as the sizes say");
  }
  return 0;
}
