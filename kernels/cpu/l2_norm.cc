#include "kernels/l2_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/loops.h"

namespace ringlet::impl {

namespace {

/// Eight sums side by side, which a vector register holds, and then those.
double sum_of_squares(const float* x, std::int64_t n) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int k = 0; k < kSums; ++k) {
      const auto value = static_cast<double>(x[i + k]);
      sums[k] += value * value;
    }
  }
  for (int k = 0; i < n; ++i, ++k) {
    const auto value = static_cast<double>(x[i]);
    sums[k] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

void l2_norm(CpuStream& stream, const ConstView& x_view, const View& norm) {
  const float* x = x_view.f32();
  const std::int64_t n = x_view.count();
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  auto* partial = stream.workspace_of<double>(chunks);
  stream.parallel_for(chunks, [=](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t begin = chunk * kChunk;
      partial[chunk] = sum_of_squares(x + begin, std::min(kChunk, n - begin));
    }
  });
  double total = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += partial[chunk];
  *norm.f32() = static_cast<float>(std::sqrt(total));
}

}  // namespace ringlet::impl
