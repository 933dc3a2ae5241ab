// The layouts that the CUDA kernels take.
#pragma once

#include <string>

#include "kernels/error.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

/// Throws ContractError unless the view is row-major.
inline void require_nchw(const char* operation, const ConstView& view, At at = At::current()) {
  if (view.layout() == Layout::nchw) return;
  throw ContractError(std::string(operation) + ": " + describe(view) + ": the layout " +
                          name_of(view.layout()) + " is not for GPUs; use --layout nchw",
                      at);
}

}  // namespace ringlet::impl
