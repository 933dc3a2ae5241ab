// Packs: several neighbouring elements that are read or written as one, so that a warp moves 512
// bytes with one instruction.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace ringlet::grid {

template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Pack {
  T values[kWidth];
  RINGLET_HOST_DEVICE constexpr T& operator[](int i) { return values[i]; }
  RINGLET_HOST_DEVICE constexpr const T& operator[](int i) const { return values[i]; }
};

/// Elements in one pack of a kernel that packs. Sixteen bytes of f32 is what one thread can move.
inline constexpr int kPack = 4;

/// Elements [kWidth * index, kWidth * (index + 1)) of `data`, which lies at a multiple of a pack.
template <int kWidth, class T>
RINGLET_HOST_DEVICE Pack<T, kWidth> load_pack(const T* data, std::int64_t index) {
  return reinterpret_cast<const Pack<T, kWidth>*>(data)[index];
}

template <int kWidth, class T>
RINGLET_HOST_DEVICE void store_pack(T* data, std::int64_t index, const Pack<T, kWidth>& pack) {
  reinterpret_cast<Pack<T, kWidth>*>(data)[index] = pack;
}

/// Whether packs may be read from this address.
template <int kWidth = kPack, class T>
bool takes_packs(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack<T, kWidth>) == 0;
}

}  // namespace ringlet::grid
