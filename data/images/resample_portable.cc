#include "data/images/resample_versions.h"

namespace ringlet::data {

namespace {

struct PlainVector {
  using Ints = std::int32_t __attribute__((vector_size(32)));

  static Ints load(const std::uint8_t* bytes) { return load(bytes, bytes + 4); }
  static Ints load(const std::uint8_t* upper, const std::uint8_t* lower) {
    return Ints{upper[0], upper[1], upper[2], upper[3], lower[0], lower[1], lower[2], lower[3]};
  }
  static void store(Ints values, std::uint8_t* bytes) {
    for (int i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::uint8_t>(values[i] > 255 ? 255 : values[i]);
    }
  }
};

}  // namespace

ResampleLoops resample_loops_portable() {
  return {across_rows<PlainVector>, down_rows<PlainVector>};
}

}  // namespace ringlet::data
