// Floats of the types that the stand-in's libraries take, in f32 and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/reduction.h"

namespace ringlet::stand_in {

/// body(data as floats of type `dtype`).
template <class Body>
void with_floats(DType dtype, void* data, const Body& body) {
  reduction::visit_activations(dtype, [&]<class T>(T) { body(static_cast<T*>(data)); });
}

/// to[i] = from[i] as f32.
inline void widen_floats(DType dtype, const void* from, std::size_t count, float* to) {
  with_floats(dtype, const_cast<void*>(from), [&](const auto* data) {
    for (std::size_t i = 0; i < count; ++i) to[i] = reduction::load(data[i]);
  });
}

/// to[i] = from[i], rounded.
inline void round_floats(DType dtype, const float* from, std::size_t count, void* to) {
  with_floats(dtype, to, [&]<class T>(T* data) {
    for (std::size_t i = 0; i < count; ++i) data[i] = reduction::round_to<T>(from[i]);
  });
}

}  // namespace ringlet::stand_in
