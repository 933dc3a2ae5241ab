#include "kernels/concat.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

/// `part` has some of the channels of `whole`.
void require_part(const char* operation, const ConstView& part, std::int64_t first,
                  const ConstView& whole) {
  require_activations(operation, part, whole);
  require_same_layout(operation, part, whole);
  const int rank = whole.shape().rank();
  require(rank == 2 || rank == 4, operation, "takes tensors [N, C] or [N, C, H, W]");
  require_rank(operation, part, rank);
  bool fits = 0 <= first && first + part.shape()[1] <= whole.shape()[1];
  for (int i = 0; i < rank; ++i) fits = fits && (i == 1 || part.shape()[i] == whole.shape()[i]);
  if (fits) return;
  throw ContractError(std::string(operation) + ": " + describe(part) + " is no part of " +
                      describe(whole) + " from channel " + std::to_string(first) + " on");
}

}  // namespace

void concat_forward(Stream& stream, ConstView x, std::int64_t first, View y) {
  constexpr const char* kName = "concat_forward";
  require_part(kName, x, first, y);
  const Work work{kName, 0, 2 * total_bytes(x)};
  dispatch(stream, work, impl::any::concat_forward, x, first, y);
}

void concat_backward(Stream& stream, ConstView dy, std::int64_t first, float beta, View dx) {
  constexpr const char* kName = "concat_backward";
  require_part(kName, dx, first, dy);
  const Work work{kName, static_cast<double>(dx.count()), 2 * total_bytes(dx)};
  dispatch(stream, work, impl::any::concat_backward, dy, first, beta, dx);
}

}  // namespace ringlet
