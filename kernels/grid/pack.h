// Packs: several neighbouring elements that are read or written as one, so that a warp moves 512
// bytes with one instruction. Narrow floats are f32 from the load to the store, which rounds them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/host_device.h"
#include "kernels/reduction.h"

namespace ringlet::grid {

template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Pack {
  T values[kWidth];
  RINGLET_HOST_DEVICE constexpr T& operator[](int i) { return values[i]; }
  RINGLET_HOST_DEVICE constexpr const T& operator[](int i) const { return values[i]; }
};

template <class T, int kWidth>
RINGLET_HOST_DEVICE Pack<T, kWidth> operator+(Pack<T, kWidth> a, const Pack<T, kWidth>& b) {
  for (int i = 0; i < kWidth; ++i) a[i] = a[i] + b[i];
  return a;
}

/// Elements in one pack of a kernel that packs: sixteen bytes of its widest type, which is what one
/// thread can move at once. 4 of f32, 8 of bf16 and f16.
template <class... T>
inline constexpr int kPackOf = 16 / static_cast<int>(std::max({sizeof(T)...}));
inline constexpr int kPack = kPackOf<float>;

/// What a kernel computes with.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// Elements [kWidth * index, kWidth * (index + 1)) of `data`, which lies at a multiple of a pack.
template <int kWidth, class T>
RINGLET_HOST_DEVICE Pack<Wide<T>, kWidth> load_pack(const T* data, std::int64_t index) {
  const auto pack = reinterpret_cast<const Pack<T, kWidth>*>(data)[index];
  if constexpr (std::is_same_v<Wide<T>, T>) {
    return pack;
  } else {
    Pack<Wide<T>, kWidth> wide{};
    for (int i = 0; i < kWidth; ++i) wide[i] = reduction::load(pack[i]);
    return wide;
  }
}

template <int kWidth, class T>
RINGLET_HOST_DEVICE void store_pack(T* data, std::int64_t index,
                                    const Pack<Wide<T>, kWidth>& wide) {
  auto* const packs = reinterpret_cast<Pack<T, kWidth>*>(data);
  if constexpr (std::is_same_v<Wide<T>, T>) {
    packs[index] = wide;
  } else {
    Pack<T, kWidth> pack{};
    for (int i = 0; i < kWidth; ++i) pack[i] = reduction::round_to<T>(wide[i]);
    packs[index] = pack;
  }
}

/// One element, as f32 where it is narrow; and rounded back.
template <class T>
RINGLET_HOST_DEVICE Wide<T> load(const T& element) {
  return load_pack<1>(&element, 0)[0];
}
template <class T>
RINGLET_HOST_DEVICE void store(T& element, Wide<T> value) {
  store_pack<1>(&element, 0, {{value}});
}

/// Whether packs may be read from these addresses.
template <int kWidth, class... T>
bool takes_packs(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack<T, kWidth>) == 0) && ...);
}

}  // namespace ringlet::grid
