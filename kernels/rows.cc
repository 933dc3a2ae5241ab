#include "kernels/rows.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_samples(const char* name, const ConstView& x, const ConstView& rows) {
  require_activations(name, x);
  require_rank(name, x, 2);
  require_dense(name, rows, x.shape());
}

}  // namespace

void rows_forward(Stream& stream, ConstView x, View rows) {
  constexpr const char* kName = "rows_forward";
  require_samples(kName, x, rows);
  dispatch(stream, {kName, 0, total_bytes(x, rows)}, impl::any::rows_forward, x, rows);
}

void rows_backward(Stream& stream, ConstView drows, float beta, View dx) {
  constexpr const char* kName = "rows_backward";
  require_samples(kName, dx, drows);
  dispatch(stream, {kName, 0, total_bytes(drows, dx)}, impl::any::rows_backward, drows, beta, dx);
}

}  // namespace ringlet
