#include <arm_neon.h>

#include "data/images/resample_versions.h"

namespace ringlet::data {

namespace {

/// Two registers: of a vector of 32 bytes GCC makes memory.
struct NeonInts {
  int32x4_t first{}, second{};

  NeonInts& operator+=(const NeonInts& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
  friend NeonInts operator+(const NeonInts& ints, std::int32_t number) {
    return {ints.first + number, ints.second + number};
  }
  friend NeonInts operator*(const NeonInts& ints, std::int32_t number) {
    return {ints.first * number, ints.second * number};
  }
  friend NeonInts operator>>(const NeonInts& ints, int bits) {
    return {ints.first >> bits, ints.second >> bits};
  }
};

struct NeonVector {
  using Ints = NeonInts;

  static Ints load(const std::uint8_t* bytes) { return widened(vld1_u8(bytes)); }
  static Ints load(const std::uint8_t* upper, const std::uint8_t* lower) {
    std::uint32_t four[2];
    __builtin_memcpy(&four[0], upper, 4);
    __builtin_memcpy(&four[1], lower, 4);
    return widened(vreinterpret_u8_u32(vset_lane_u32(four[1], vdup_n_u32(four[0]), 1)));
  }
  static void store(Ints values, std::uint8_t* bytes) {
    const uint16x8_t words = vcombine_u16(vqmovun_s32(values.first), vqmovun_s32(values.second));
    vst1_u8(bytes, vqmovn_u16(words));
  }

 private:
  static Ints widened(uint8x8_t bytes) {
    const uint16x8_t words = vmovl_u8(bytes);
    return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words))),
            vreinterpretq_s32_u32(vmovl_high_u16(words))};
  }
};

}  // namespace

ResampleLoops best_resample_loops() { return {across_rows<NeonVector>, down_rows<NeonVector>}; }

}  // namespace ringlet::data
