#include "kernels/classify.h"

#include <atomic>
#include <bit>

#include "kernels/cpu/loops.h"
#include "kernels/elements.h"

namespace ringlet::impl {

namespace {

/// The class of the largest logit; the first of equal ones, never a NaN, or -1 if all are.
std::int64_t argmax(const float* logits, std::int64_t classes, std::int64_t stride) {
  std::int64_t best = -1;
  for (std::int64_t k = 0; k < classes; ++k) {
    const float value = logits[k * stride];
    if (value == value && (best < 0 || value > logits[best * stride])) best = k;
  }
  return best;
}

}  // namespace

void argmax_count(CpuStream&, const ConstView& logits_view, const ConstView& labels_view,
                  const View& count_view) {
  constexpr const char* kName = "argmax_count";
  const bool lanes = in_lanes(kName, logits_view);
  const float* logits = logits_view.f32();
  const auto* labels = labels_view.as<std::int32_t>();
  auto* count = count_view.as<std::int32_t>();
  const std::int64_t samples = logits_view.shape()[0], classes = logits_view.shape()[1];
  for (std::int64_t n = 0; n < samples; ++n) {
    const std::int64_t label = labels[n];
    require(0 <= label && label < classes, kName, "a label lies outside the classes");
    const float* row = logits + (lanes ? n / kLanes * kLanes * classes + n % kLanes : n * classes);
    ++count[2 * label];
    if (argmax(row, classes, lanes ? kLanes : 1) == label) ++count[2 * label + 1];
  }
}

void count_nonfinite(CpuStream& stream, const ConstView& x_view, const View& count_view) {
  const float* x = x_view.f32();
  const std::int64_t n = x_view.storage();
  std::atomic<std::int32_t> total{0};
  stream.parallel_for((n + kChunk - 1) / kChunk, [&](std::int64_t first, std::int64_t last, int) {
    std::int32_t found = 0;
    const std::int64_t end = std::min(n, last * kChunk);
    for (std::int64_t i = first * kChunk; i < end; ++i) {
      found += element::is_nonfinite(std::bit_cast<std::uint32_t>(x[i])) ? 1 : 0;
    }
    total += found;
  });
  *count_view.as<std::int32_t>() = total;
}

}  // namespace ringlet::impl
