#include "nn/ops/concat.h"

#include <algorithm>
#include <array>

#include "kernels/concat.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// The first part's with the channels of all.
Shape shape_of(std::span<const Variable> parts) {
  const Shape& first = parts.front().shape();
  require(first.rank() == 2 || first.rank() == 4, "concat", "takes tensors [N, C] or [N, C, H, W]");
  std::int64_t channels = 0;
  for (const Variable& part : parts) channels += part.shape().rank() < 2 ? 0 : part.shape()[1];
  return first.rank() == 2 ? Shape{first[0], channels}
                           : Shape{first[0], channels, first[2], first[3]};
}

}  // namespace

Variable concat(std::span<const Variable> parts) {
  require(!parts.empty() && parts.size() <= kMostParts, "concat", "takes one to eight tensors");
  Tape& tape = parts.front().tape();
  const Variable y = tape.make(shape_of(parts), parts.front().layout(), parts.front().dtype());
  std::array<Variable, kMostParts> all;
  std::copy(parts.begin(), parts.end(), all.begin());
  std::int64_t first = 0;
  for (const Variable& part : parts) {
    concat_forward(tape.stream(), part.value(), first, y.value());
    first += part.shape()[1];
  }
  tape.record("concat", {all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7]}, y,
              [=](Backward& backward) {
                std::int64_t begin = 0;
                for (const Variable& part : all) {
                  if (part.absent()) break;
                  if (backward.wants(part)) {
                    const auto [dx, beta] = backward.target(part);
                    concat_backward(backward.stream(), backward.gradient(y), begin, beta, dx);
                  }
                  begin += part.shape()[1];
                }
              });
  return y;
}

}  // namespace ringlet::nn
