// The instances of all vector kernels for an instruction set.
#include "kernels/cpu/lanes/kernel_table.h"

#include RINGLET_SIMD_HEADER

#include "kernels/cpu/lanes/copy_columns.h"
#include "kernels/cpu/lanes/dense.h"
#include "kernels/cpu/lanes/filter.h"
#include "kernels/cpu/lanes/fma_chain.h"
#include "kernels/cpu/lanes/gather.h"
#include "kernels/cpu/lanes/pooled.h"
#include "kernels/cpu/lanes/pooling.h"
#include "kernels/cpu/lanes/winograd_transforms.h"

namespace ringlet::lanes {

/// Calls body(Constant<value>) for 1 <= value <= kLast.
template <int kLast, class F>
[[gnu::always_inline]] inline void with_constant(int value, const F& body) {
  if constexpr (kLast > 0) {
    if (value == kLast) {
      body(Constant<kLast>{});
    } else {
      with_constant<kLast - 1>(value, body);
    }
  }
}

/// Calls body(Constant<first>, Constant<second>).
template <int kFirst, int kSecond, class F>
[[gnu::always_inline]] inline void with_constants(int first, int second, const F& body) {
  with_constant<kFirst>(
      first, [&](auto a) { with_constant<kSecond>(second, [&](auto b) { body(a, b); }); });
}

template <class S>
void choose_gather(const GatherArguments& a, int vectors, int outputs) {
  with_constants<S::kGatherVectors, S::kGatherOutputs>(vectors, outputs, [&](auto v, auto k) {
    gather<S, decltype(v)::value, decltype(k)::value>(a);
  });
}

template <class S>
void choose_filter(const FilterArguments& a, int outputs, int taps) {
  with_constants<S::kFilterOutputs, S::kFilterTaps>(
      outputs, taps, [&](auto o, auto t) { filter<S, decltype(o)::value, decltype(t)::value>(a); });
}

template <class S, int kMaxOutputs, int kStride>
void choose_dense(const DenseArguments& a, int vectors, int outputs) {
  with_constants<S::kDenseVectors, kMaxOutputs>(vectors, outputs, [&](auto v, auto k) {
    dense<S, decltype(v)::value, decltype(k)::value, kStride>(a);
  });
}

template <class S>
void choose_pooled(const PooledArguments& a, int outputs) {
  with_constant<S::kPooledOutputs>(outputs, [&](auto k) { pooled<S, decltype(k)::value>(a); });
}

template <class S>
constexpr KernelTable make_table() {
  return {
      .width = S::kWidth,
      .gather_vectors = S::kGatherVectors,
      .gather_outputs = S::kGatherOutputs,
      .filter_outputs = S::kFilterOutputs,
      .filter_taps = S::kFilterTaps,
      .dense_vectors = S::kDenseVectors,
      .dense_outputs = S::kDenseOutputs,
      .rows_outputs = S::kRowsOutputs,
      .pooled_outputs = S::kPooledOutputs,
      .gather = choose_gather<S>,
      .filter = choose_filter<S>,
      .dense_packed = choose_dense<S, S::kDenseOutputs, 1>,
      .dense_lanes = choose_dense<S, S::kDenseOutputs, 16>,
      .dense_rows = choose_dense<S, S::kRowsOutputs, kAnyStride>,
      .pooled = choose_pooled<S>,
      .unpool = unpool<S>,
      .copy_columns = copy_columns<S>,
      .input_to_points = image_to_points<S, InputPoints>,
      .gradient_to_points = image_to_points<S, GradientPoints>,
      .points_to_output = points_to_output<S>,
      .filters_to_points = filters_to_points<S>,
      .points_to_filters = points_to_filters<S>,
      .avg_pool_forward = avg_pool_forward<S>,
      .avg_pool_backward = avg_pool_backward<S>,
      .max_pool_forward = max_pool_forward<S>,
      .add_number = add_number<S>,
      .sum = sum<S>,
      .transpose = transpose<S>,
      .fma_chain = fma_chain<S>,
  };
}

const KernelTable& kernels_of(RINGLET_SET) {
  static constexpr KernelTable kTable = make_table<RINGLET_SIMD>();
  return kTable;
}

}  // namespace ringlet::lanes
