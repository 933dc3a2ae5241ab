// What sums or counts: classify.h and l2_norm.h.
#include "kernels/classify.h"
#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"
#include "kernels/l2_norm.h"

namespace ringlet {

void argmax_count(Stream& stream, ConstView logits, ConstView labels, View count) {
  constexpr const char* kName = "argmax_count";
  require_activations(kName, logits);
  require_rank(kName, logits, 2);
  require_labels(kName, labels, logits);
  require_dtype(kName, count, DType::i32);
  require_shape(kName, count, Shape{2 * logits.shape()[1]});
  const Work work{kName, static_cast<double>(logits.count()), total_bytes(logits, labels, count)};
  dispatch_in_f32(stream, work, impl::any::argmax_count, logits, labels, count);
}

void count_nonfinite(Stream& stream, ConstView x, View count) {
  constexpr const char* kName = "count_nonfinite";
  require_activations(kName, x);
  require_dtype(kName, count, DType::i32);
  require_shape(kName, count, Shape{1});
  const Work work{kName, 0, total_bytes(x, count)};
  dispatch_in_f32(stream, work, impl::any::count_nonfinite, x, count);
}

void l2_norm(Stream& stream, ConstView x, View norm, const NormLimit& limit) {
  constexpr const char* kName = "l2_norm";
  require_rank(kName, x, 1);
  require_dense(kName, x, x.shape());
  require_dense(kName, norm, Shape{1});
  if (!limit.factor.absent()) require_dense(kName, limit.factor, Shape{1});
  const Work work{kName, 2.0 * static_cast<double>(x.count()), total_bytes(x, norm)};
  dispatch(stream, work, impl::any::l2_norm, x, norm, limit);
}

void square_sum(Stream& stream, ConstView x, View sum, double weight) {
  constexpr const char* kName = "square_sum";
  require_rank(kName, x, 1);
  require_dense(kName, x, x.shape());
  require_dtype(kName, sum, DType::u8);
  require_shape(kName, sum, Shape{kDoubleBytes});
  const Work work{kName, 2.0 * static_cast<double>(x.count()), total_bytes(x, sum)};
  dispatch(stream, work, impl::any::square_sum, x, sum, weight);
}

void square_sums(Stream& stream, ConstView x, ConstView ranges, std::int64_t longest, View sums) {
  constexpr const char* kName = "square_sums";
  constexpr auto kRange = static_cast<std::int64_t>(sizeof(SquareRange));
  require_rank(kName, x, 1);
  require_dense(kName, x, x.shape());
  for (const ConstView& bytes : {ranges, ConstView(sums)}) {
    require_dtype(kName, bytes, DType::u8);
    require_rank(kName, bytes, 1);
  }
  require(ranges.count() % kRange == 0, kName, "the ranges are SquareRange, of 24 bytes each");
  require(sums.count() % kDoubleBytes == 0, kName, "the sums are doubles, of eight bytes each");
  require(longest >= 0, kName, "no range has less than no elements");
  if (ranges.count() == 0) return;
  const Work work{kName, 2.0 * static_cast<double>(x.count()), total_bytes(x, sums)};
  dispatch(stream, work, impl::any::square_sums, x, ranges, longest, sums);
}

void norm_of_sums(Stream& stream, ConstView sums, View norm, const NormLimit& limit) {
  constexpr const char* kName = "norm_of_sums";
  require_dtype(kName, sums, DType::u8);
  require_rank(kName, sums, 1);
  require(sums.count() % kDoubleBytes == 0, kName, "the sums are doubles, of eight bytes each");
  require_dense(kName, norm, Shape{1});
  if (!limit.factor.absent()) require_dense(kName, limit.factor, Shape{1});
  dispatch(stream, {kName, 0, total_bytes(sums, norm)}, impl::any::norm_of_sums, sums, norm, limit);
}

}  // namespace ringlet
