// The CPU's implementations of kernels/reduce.h and of casts, by the loops of an instruction set,
// and of kernels/l2_norm.h and classify.h.
#include "kernels/reduce.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>

#include "kernels/cpu/cpu_grid.h"
#include "kernels/cpu/reduce_arrays.h"
#include "kernels/cpu/reduction/table.h"
#include "kernels/elements.h"
#include "kernels/grid/l2_norm.h"

namespace ringlet::impl {

namespace {

/// Calls f(begin, end) on parts of [0, count) that are worth another thread's wake-up.
template <class F>
void for_each_part(CpuStream& stream, std::int64_t count, F f) {
  constexpr std::int64_t kPart = 1 << 15;  // elements
  if (count <= kPart) return f(std::int64_t{0}, count);
  stream.parallel_for((count + kPart - 1) / kPart, [&](std::int64_t first, std::int64_t last, int) {
    f(first * kPart, std::min(count, last * kPart));
  });
}

ReductionLoops loops_for(const CpuStream& stream) {
  return for_instruction_set(stream.isa(), [](auto set) { return loops_of(set); });
}

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

void reduce(CpuStream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options) {
  // Not cleared first, which would take as long as a small reduction.
  std::array<const void*, kMaxReduced> sources;  // NOLINT(*-member-init)
  std::array<void*, kMaxReduced> targets;        // NOLINT(*-member-init)
  std::transform(xs.begin(), xs.end(), sources.begin(), [](const auto& x) { return x.data(); });
  std::transform(ys.begin(), ys.end(), targets.begin(), [](const auto& y) { return y.data(); });
  reduce_arrays(
      stream, op,
      {{sources.data(), xs.size()}, {targets.data(), ys.size()}, ys[0].dtype(), ys[0].storage()},
      options);
}

void reduce_arrays(CpuStream& stream, ReduceOp op, const HostArrays& arrays,
                   const ReduceOptions& options) {
  const ReduceArguments arguments{.xs = arrays.xs.data(),
                                  .sources = static_cast<int>(arrays.xs.size()),
                                  .ys = arrays.ys.data(),
                                  .targets = static_cast<int>(arrays.ys.size()),
                                  .divisor = op == ReduceOp::mean ? options.divisor : 1,
                                  .stores = options.stores};
  const ReduceFunction function = loops_for(stream).reduce(op, arrays.dtype);
  for_each_part(stream, arrays.count,
                [&](std::int64_t begin, std::int64_t end) { function(arguments, begin, end); });
}

void reduce_into(CpuStream& stream, ReduceOp op, const ConstView& x, const View& y) {
  const void* const sources[] = {y.data(), x.data()};
  void* const target = y.data();
  reduce_arrays(stream, op, {sources, {&target, 1}, y.dtype(), y.storage()}, {});
}

void cast(CpuStream& stream, const ConstView& x, const View& y) {
  const CastFunction function = loops_for(stream).cast(x.dtype(), y.dtype());
  for_each_part(stream, y.storage(), [&](std::int64_t begin, std::int64_t end) {
    function(x.data(), y.data(), begin, end);
  });
}

namespace {

double squares_of(CpuStream& stream, const ConstView& x_view) {
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
  return total;
}

}  // namespace

void l2_norm(CpuStream& stream, const ConstView& x, const View& norm, const NormLimit& limit) {
  *norm.f32() = static_cast<float>(std::sqrt(squares_of(stream, x)));
  if (limit.factor.absent()) return;
  *limit.factor.f32() = element::clip_factor(*norm.f32(), limit.most);
}

void square_sum(CpuStream& stream, const ConstView& x, const View& sum, double weight) {
  *static_cast<double*>(sum.data()) = weight * squares_of(stream, x);
}

void square_sums(CpuStream& stream, const ConstView& x, const ConstView& ranges, std::int64_t,
                 const View& sums) {
  const auto* const all = static_cast<const SquareRange*>(ranges.data());
  auto* const to = static_cast<double*>(sums.data());
  const std::int64_t count = ranges.count() / static_cast<std::int64_t>(sizeof(SquareRange));
  for (std::int64_t i = 0; i < count; ++i) {
    to[all[i].sum] = squares_of(stream, x.slice(all[i].begin, all[i].end));
  }
}

void norm_of_sums(CpuStream& stream, const ConstView& sums, const View& norm,
                  const NormLimit& limit) {
  grid::norm_of_sums(CpuGrid(stream), sums, norm, limit);
}

void argmax_count(CpuStream&, const ConstView& logits_view, const ConstView& labels_view,
                  const View& count_view) {
  constexpr const char* kName = "argmax_count";
  const bool lanes = in_lanes(logits_view);
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
