// Checks that the contracts of several operations share. A check that fails throws ContractError,
// which names the operation and the tensor. A check that holds allocates nothing.
#pragma once

#include <string>

#include "base/error.h"
#include "kernels/tensor.h"

namespace ringlet {

template <class... Views>
void require_f32(const char* operation, const Views&... views) {
  (require_dtype(operation, views, DType::f32), ...);
}

/// Activations of one call: f32, bf16 or f16, all of one type.
template <class... Views>
void require_activations(const char* operation, const ConstView& first, const Views&... others) {
  if (first.dtype() != DType::f32 && !is_narrow(first.dtype())) {
    throw ContractError(std::string(operation) + ": " + describe(first) +
                        " should be f32, bf16 or f16");
  }
  (require_dtype(operation, others, first.dtype()), ...);
}

inline void require_rank(const char* operation, const ConstView& view, int rank,
                         At at = At::current()) {
  if (view.shape().rank() == rank) return;
  throw ContractError(
      std::string(operation) + ": " + describe(view) + " should have rank " + std::to_string(rank),
      at);
}

inline void require_layout(const char* operation, const ConstView& view, Layout layout,
                           At at = At::current()) {
  if (view.layout() == layout) return;
  throw ContractError(std::string(operation) + ": " + describe(view) + " should be in the layout " +
                          name_of(layout),
                      at);
}

inline void require_same_layout(const char* operation, const ConstView& a, const ConstView& b,
                                At at = At::current()) {
  if (a.layout() == b.layout()) return;
  throw ContractError(
      std::string(operation) + ": the layouts differ, " + describe(a) + " and " + describe(b), at);
}

/// f32, row-major, of this shape: weights, biases, losses and their gradients.
inline void require_dense(const char* operation, const ConstView& view, const Shape& shape,
                          At at = At::current()) {
  require_dtype(operation, view, DType::f32, at);
  require_layout(operation, view, Layout::nchw, at);
  require_shape(operation, view, shape, at);
}

/// Weights that are multiplied with activations of type `dtype`: of the same type, row-major.
inline void require_weights(const char* operation, const ConstView& view, const Shape& shape,
                            DType dtype, At at = At::current()) {
  require_dtype(operation, view, dtype, at);
  require_layout(operation, view, Layout::nchw, at);
  require_shape(operation, view, shape, at);
}

/// i32 [N], one per sample of `batch`.
inline void require_labels(const char* operation, const ConstView& labels, const ConstView& batch,
                           At at = At::current()) {
  require_dtype(operation, labels, DType::i32, at);
  require_shape(operation, labels, Shape{batch.shape()[0]}, at);
}

/// Bytes of all views together, absent ones left out.
template <class... Views>
double total_bytes(const Views&... views) {
  return ((views.absent() ? 0.0 : static_cast<double>(views.bytes())) + ...);
}

}  // namespace ringlet
