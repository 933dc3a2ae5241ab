// The implementations of the operations: a function `impl::operation` for each operation and each
// device. Its type is that of the public function, with the device's stream instead of any stream
// and with views by reference:
//
//   kernels/elementwise.h   relu_forward(Stream& stream, ConstView x, View y)
//   kernels/cpu/            relu_forward(CpuStream& stream, const ConstView& x, const View& y)
//   kernels/cuda/           relu_forward(CudaStream& stream, const ConstView& x, const View& y)
//
// The public function has checked the contract before it calls them, except what lies in the
// device's memory (labels, positions, rates) and layouts that a device lacks: the implementation
// checks these. An operation that only one device has does not stand here: its public function
// names that device's stream (devices/dispatch.h).
#pragma once

#include <type_traits>

#include "kernels/adamw.h"
#include "kernels/batch_norm.h"
#include "kernels/bias.h"
#include "kernels/classify.h"
#include "kernels/concat.h"
#include "kernels/conv2d.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/ema.h"
#include "kernels/gather_batch.h"
#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "kernels/linear.h"
#include "kernels/loss_scale.h"
#include "kernels/margin_softmax.h"
#include "kernels/normalize.h"
#include "kernels/pointwise_loss.h"
#include "kernels/pool2d.h"
#include "kernels/prelu.h"
#include "kernels/reduce.h"
#include "kernels/row_sample.h"
#include "kernels/row_updates.h"
#include "kernels/rows.h"
#include "kernels/running_statistics.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"
#include "kernels/softmax_shards.h"

namespace ringlet {

class CpuStream;
class CudaStream;

namespace detail {

template <class T>
inline constexpr bool kIsView = std::is_same_v<T, View> || std::is_same_v<T, ConstView>;

/// The type of a public function's implementation on the device of `DeviceStream`.
template <class DeviceStream, class Public>
struct ImplementationOf;
template <class DeviceStream, class... Arguments>
struct ImplementationOf<DeviceStream, void(Stream&, Arguments...)> {
  using Type = void(DeviceStream&,
                    std::conditional_t<kIsView<Arguments>, const Arguments&, Arguments>...);
};

}  // namespace detail

namespace impl {
// NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared has none
/// Declares them, and impl::any::operation, which calls that of the stream's device.
#define RINGLET_ON_EACH_DEVICE(operation)                                             \
  detail::ImplementationOf<CpuStream, decltype(ringlet::operation)>::Type operation;  \
  detail::ImplementationOf<CudaStream, decltype(ringlet::operation)>::Type operation; \
  namespace any {                                                                     \
  inline constexpr auto operation = [](auto& stream, const auto&... arguments) {      \
    impl::operation(stream, arguments...);                                            \
  };                                                                                  \
  }                                                                                   \
  static_assert(true)
// NOLINTEND(bugprone-macro-parentheses)
RINGLET_ON_EACH_DEVICE(accumulate);
RINGLET_ON_EACH_DEVICE(adamw_count_rows);
RINGLET_ON_EACH_DEVICE(adamw_update);
RINGLET_ON_EACH_DEVICE(adamw_update_rows);
RINGLET_ON_EACH_DEVICE(add);
RINGLET_ON_EACH_DEVICE(argmax_count);
RINGLET_ON_EACH_DEVICE(avg_pool2d_backward);
RINGLET_ON_EACH_DEVICE(avg_pool2d_forward);
RINGLET_ON_EACH_DEVICE(batch_norm_backward);
RINGLET_ON_EACH_DEVICE(batch_norm_backward_data);
RINGLET_ON_EACH_DEVICE(batch_norm_backward_sums);
RINGLET_ON_EACH_DEVICE(batch_norm_forward);
RINGLET_ON_EACH_DEVICE(batch_norm_merge);
RINGLET_ON_EACH_DEVICE(batch_norm_moments);
RINGLET_ON_EACH_DEVICE(batch_norm_train_forward);
RINGLET_ON_EACH_DEVICE(bias_backward);
RINGLET_ON_EACH_DEVICE(bias_forward);
RINGLET_ON_EACH_DEVICE(bias_relu_avg_pool2d_backward);
RINGLET_ON_EACH_DEVICE(bias_relu_backward);
RINGLET_ON_EACH_DEVICE(cast);
RINGLET_ON_EACH_DEVICE(concat_backward);
RINGLET_ON_EACH_DEVICE(concat_forward);
RINGLET_ON_EACH_DEVICE(conv2d_backward_data);
RINGLET_ON_EACH_DEVICE(conv2d_backward_filter);
RINGLET_ON_EACH_DEVICE(conv2d_forward);
RINGLET_ON_EACH_DEVICE(copy);
RINGLET_ON_EACH_DEVICE(copy_from_device);
RINGLET_ON_EACH_DEVICE(copy_from_host);
RINGLET_ON_EACH_DEVICE(copy_to_host);
RINGLET_ON_EACH_DEVICE(count_nonfinite);
RINGLET_ON_EACH_DEVICE(dropout_backward);
RINGLET_ON_EACH_DEVICE(dropout_forward);
RINGLET_ON_EACH_DEVICE(ema_update);
RINGLET_ON_EACH_DEVICE(enqueue_copy_from_host);
RINGLET_ON_EACH_DEVICE(enqueue_copy_to_host);
RINGLET_ON_EACH_DEVICE(fill);
RINGLET_ON_EACH_DEVICE(find_rows);
RINGLET_ON_EACH_DEVICE(gather_batch);
RINGLET_ON_EACH_DEVICE(gather_rows);
RINGLET_ON_EACH_DEVICE(inverse_norms);
RINGLET_ON_EACH_DEVICE(l2_norm);
RINGLET_ON_EACH_DEVICE(linear_backward_data);
RINGLET_ON_EACH_DEVICE(linear_backward_weight);
RINGLET_ON_EACH_DEVICE(linear_backward_weight_bias);
RINGLET_ON_EACH_DEVICE(linear_forward);
RINGLET_ON_EACH_DEVICE(loss_scale_begin);
RINGLET_ON_EACH_DEVICE(loss_scale_end);
RINGLET_ON_EACH_DEVICE(margin_angles);
RINGLET_ON_EACH_DEVICE(margin_softmax_gradient);
RINGLET_ON_EACH_DEVICE(margin_softmax_part);
RINGLET_ON_EACH_DEVICE(margin_targets);
RINGLET_ON_EACH_DEVICE(max_pool2d_backward);
RINGLET_ON_EACH_DEVICE(max_pool2d_forward);
RINGLET_ON_EACH_DEVICE(norm_of_sums);
RINGLET_ON_EACH_DEVICE(normalize_forward);
RINGLET_ON_EACH_DEVICE(pointwise_loss_backward);
RINGLET_ON_EACH_DEVICE(pointwise_loss_forward);
RINGLET_ON_EACH_DEVICE(prelu_backward);
RINGLET_ON_EACH_DEVICE(prelu_forward);
RINGLET_ON_EACH_DEVICE(project_rows);
RINGLET_ON_EACH_DEVICE(reduce);
RINGLET_ON_EACH_DEVICE(reduce_into);
RINGLET_ON_EACH_DEVICE(relayout);
RINGLET_ON_EACH_DEVICE(relu_backward);
RINGLET_ON_EACH_DEVICE(relu_forward);
RINGLET_ON_EACH_DEVICE(rows_backward);
RINGLET_ON_EACH_DEVICE(rows_forward);
RINGLET_ON_EACH_DEVICE(running_statistics_commit);
RINGLET_ON_EACH_DEVICE(running_statistics_track);
RINGLET_ON_EACH_DEVICE(scale);
RINGLET_ON_EACH_DEVICE(sgd_update);
RINGLET_ON_EACH_DEVICE(sgd_update_rows);
RINGLET_ON_EACH_DEVICE(sigmoid_backward);
RINGLET_ON_EACH_DEVICE(sigmoid_forward);
RINGLET_ON_EACH_DEVICE(softmax_cross_entropy_backward);
RINGLET_ON_EACH_DEVICE(softmax_cross_entropy_forward);
RINGLET_ON_EACH_DEVICE(softmax_shard_backward);
RINGLET_ON_EACH_DEVICE(softmax_shard_forward);
RINGLET_ON_EACH_DEVICE(softmax_shards_loss);
RINGLET_ON_EACH_DEVICE(softmax_shards_merge);
RINGLET_ON_EACH_DEVICE(softmax_shards_right);
RINGLET_ON_EACH_DEVICE(square_sum);
RINGLET_ON_EACH_DEVICE(square_sums);
RINGLET_ON_EACH_DEVICE(tanh_backward);
RINGLET_ON_EACH_DEVICE(tanh_forward);

#undef RINGLET_ON_EACH_DEVICE

}  // namespace impl

}  // namespace ringlet
