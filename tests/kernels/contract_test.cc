// A broken contract throws ContractError with the operation's name, on every device. A contract
// that holds costs nothing on the device without memory.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/adamw.h"
#include "kernels/batch_norm.h"
#include "kernels/bias.h"
#include "kernels/classify.h"
#include "kernels/concat.h"
#include "kernels/conv2d.h"
#include "kernels/cuda/views.h"
#include "kernels/device.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/ema.h"
#include "kernels/gather_batch.h"
#include "kernels/l2_norm.h"
#include "kernels/linear.h"
#include "kernels/loss_scale.h"
#include "kernels/margin_softmax.h"
#include "kernels/memory.h"
#include "kernels/normalize.h"
#include "kernels/pointwise_loss.h"
#include "kernels/pool2d.h"
#include "kernels/prelu.h"
#include "kernels/reduce.h"
#include "kernels/row_sample.h"
#include "kernels/row_updates.h"
#include "kernels/rows.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"
#include "kernels/softmax_shards.h"

namespace ringlet {
namespace {

/// Tensors of the shapes that the tables below need, on one device.
struct Fixture {
  explicit Fixture(DeviceKind kind) : device(open_device({kind, 0}, {1, false})) {}

  Tensor f32(const Shape& shape, Layout layout = Layout::nchw) {
    return {*device, shape, DType::f32, layout};
  }
  Tensor i32(const Shape& shape, Layout layout = Layout::nchw) {
    return {*device, shape, DType::i32, layout};
  }
  Tensor f16(const Shape& shape) { return {*device, shape, DType::f16, Layout::nchw}; }
  Tensor u8(const Shape& shape) { return {*device, shape, DType::u8, Layout::nchw}; }
  Stream& stream() { return device->compute(); }

  std::unique_ptr<Device> device;
};

struct Violation {
  const char* operation;
  const char* what;
  std::function<void(Fixture&)> call;
};

constexpr Activation kNone = Activation::none;

std::vector<Violation> convolutions() {
  const auto forward = [](const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y) {
    return [=](Fixture& f) {
      conv2d_forward(f.stream(), spec, f.f32(x), f.f32(w), {}, kNone, f.f32(y));
    };
  };
  const Shape x{2, 4, 8, 8}, w{6, 4, 3, 3}, y{2, 6, 6, 6};
  return {
      {"conv2d_output_shape", "rank",
       [=](Fixture&) {
         conv2d_output_shape({}, {2, 4}, w);
       }},
      {"conv2d_output_shape", "no room",
       [=](Fixture&) {
         conv2d_output_shape({}, {2, 4, 2, 8}, w);
       }},
      {"conv2d_forward", "channels", forward({}, {2, 3, 8, 8}, w, y)},
      {"conv2d_forward", "groups", forward({.groups = 4}, x, {6, 1, 3, 3}, y)},
      {"conv2d_forward", "no groups", forward({.groups = 0}, x, w, y)},
      {"conv2d_forward", "stride", forward({.stride = {0, 1}}, x, w, y)},
      {"conv2d_forward", "padding", forward({.padding = {0, -1}}, x, w, y)},
      {"conv2d_forward", "dilation", forward({.dilation = {1, 0}}, x, w, y)},
      {"conv2d_forward", "output", forward({}, x, w, {2, 6, 6, 5})},
      {"conv2d_forward", "batch", forward({}, x, w, {3, 6, 6, 6})},
      {"conv2d_forward", "bias",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.f32(x), f.f32(w), f.f32({5}), kNone, f.f32(y));
       }},
      {"conv2d_forward", "type",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.i32(x), f.f32(w), {}, kNone, f.f32(y));
       }},
      {"conv2d_forward", "layouts",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.f32(x, Layout::lanes), f.f32(w), {}, kNone, f.f32(y));
       }},
      {"conv2d_backward_data", "weights' layout",
       [=](Fixture& f) {
         conv2d_backward_data(f.stream(), {}, f.f32(w, Layout::lanes), f.f32(y), 0, f.f32(x));
       }},
      {"conv2d_backward_data", "gradient",
       [=](Fixture& f) { conv2d_backward_data(f.stream(), {}, f.f32(w), f.f32(x), 0, f.f32(x)); }},
      {"conv2d_backward_filter", "gradient",
       [=](Fixture& f) {
         conv2d_backward_filter(f.stream(), {}, f.f32(x), f.f32(y), 0, f.f32({6, 4, 3, 2}));
       }},
  };
}

std::vector<Violation> poolings() {
  const Shape x{2, 3, 8, 8}, y{2, 3, 4, 4};
  const auto forward = [=](const Pool2dSpec& spec, const Shape& out) {
    return [=](Fixture& f) { avg_pool2d_forward(f.stream(), spec, f.f32(x), f.f32(out)); };
  };
  return {
      {"pool2d_output_shape", "rank",
       [](Fixture&) {
         pool2d_output_shape({}, {2, 3});
       }},
      {"pool2d_output_shape", "no room",
       [](Fixture&) {
         pool2d_output_shape({}, {2, 3, 1, 8});
       }},
      {"avg_pool2d_forward", "output", forward({}, {2, 3, 4, 5})},
      {"avg_pool2d_forward", "window", forward({.kernel = {0, 2}}, y)},
      {"avg_pool2d_forward", "stride", forward({.stride = {2, 0}}, y)},
      {"avg_pool2d_forward", "padding", forward({.padding = {0, 2}}, y)},
      {"avg_pool2d_backward", "output",
       [=](Fixture& f) { avg_pool2d_backward(f.stream(), {}, f.f32(x), 0, f.f32(x)); }},
      {"max_pool2d_forward", "winner's type",
       [=](Fixture& f) { max_pool2d_forward(f.stream(), {}, f.f32(x), f.f32(y), f.f32(y)); }},
      {"max_pool2d_forward", "winner's layout",
       [=](Fixture& f) {
         max_pool2d_forward(f.stream(), {}, f.f32(x), f.f32(y), f.i32(y, Layout::lanes));
       }},
      {"max_pool2d_backward", "winner's shape",
       [=](Fixture& f) { max_pool2d_backward(f.stream(), {}, f.f32(y), f.i32(x), 0, f.f32(x)); }},
  };
}

std::vector<Violation> layers() {
  return {
      {"linear_forward", "inputs",
       [](Fixture& f) {
         linear_forward(f.stream(), f.f32({2, 5}), f.f32({3, 4}), {}, kNone, f.f32({2, 3}));
       }},
      {"linear_forward", "bias",
       [](Fixture& f) {
         linear_forward(f.stream(), f.f32({2, 4}), f.f32({3, 4}), f.f32({4}), kNone, f.f32({2, 3}));
       }},
      {"linear_forward", "rank",
       [](Fixture& f) {
         linear_forward(f.stream(), f.f32({2, 4, 1, 1}), f.f32({3, 4}), {}, kNone, f.f32({2, 3}));
       }},
      {"linear_backward_data", "layouts",
       [](Fixture& f) {
         linear_backward_data(f.stream(), f.f32({3, 4}), f.f32({2, 3}), 0,
                              f.f32({2, 4}, Layout::lanes));
       }},
      {"linear_backward_weight_bias", "bias",
       [](Fixture& f) {
         linear_backward_weight_bias(f.stream(), f.f32({2, 3}), f.f32({2, 4}), 0, f.f32({4, 3}), 0,
                                     f.f32({3}));
       }},
      {"linear_backward_weight", "weights",
       [](Fixture& f) {
         linear_backward_weight(f.stream(), f.f32({2, 4}), f.f32({2, 3}), 0, f.f32({4, 3}));
       }},
      {"bias_forward", "channels",
       [](Fixture& f) {
         bias_forward(f.stream(), f.f32({2, 3}), f.f32({2}), f.f32({2, 3}));
       }},
      {"bias_backward", "rank",
       [](Fixture& f) { bias_backward(f.stream(), f.f32({6}), 0, f.f32({6})); }},
      {"bias_relu_backward", "kinds",
       [](Fixture& f) {
         bias_relu_backward(f.stream(), f.f32({2, 3}), f.f32({3, 2}), f.f32({3, 2}), 0, f.f32({2}));
       }},
      {"bias_relu_avg_pool2d_backward", "output",
       [](Fixture& f) {
         bias_relu_avg_pool2d_backward(f.stream(), f.f32({2, 3, 2, 3}), f.f32({2, 3, 4, 4}), 0, {});
       }},
      {"bias_relu_avg_pool2d_backward", "layout",
       [](Fixture& f) {
         bias_relu_avg_pool2d_backward(f.stream(), f.f32({2, 3, 2, 2}, Layout::lanes),
                                       f.f32({2, 3, 4, 4}, Layout::lanes), 0, {});
       }},
      {"relu_forward", "kinds",
       [](Fixture& f) {
         relu_forward(f.stream(), f.f32({2, 3}), f.f32({3, 2}));
       }},
      {"relu_backward", "layouts",
       [](Fixture& f) {
         relu_backward(f.stream(), f.f32({2, 3}), f.f32({2, 3}, Layout::lanes), 0, f.f32({2, 3}));
       }},
      {"dropout_forward", "probability of 1",
       [](Fixture& f) {
         dropout_forward(f.stream(), {1.0F, 0, 0}, f.f32({2}), f.f32({2}));
       }},
      {"dropout_backward", "negative sample",
       [](Fixture& f) {
         dropout_backward(f.stream(), {0.5F, 0, -1}, f.f32({2}), 0, f.f32({2}));
       }},
      {"dropout_forward", "position",
       [](Fixture& f) {
         dropout_forward(f.stream(), {0.5F, 0, 0, f.u8({8})}, f.f32({2}), f.f32({2}));
       }},
  };
}

std::vector<Violation> others() {
  return {
      {"prelu_forward", "slopes",
       [](Fixture& f) {
         prelu_forward(f.stream(), f.f32({2, 3}), f.f32({2}), f.f32({2, 3}));
       }},
      {"prelu_forward", "rank",
       [](Fixture& f) { prelu_forward(f.stream(), f.f32({6}), f.f32({1}), f.f32({6})); }},
      {"prelu_backward", "kinds",
       [](Fixture& f) {
         prelu_backward(f.stream(), f.f32({2, 3}), f.f32({3}), f.f32({3, 2}), 0, {}, 0, {});
       }},
      {"prelu_backward", "gradient of slopes",
       [](Fixture& f) {
         prelu_backward(f.stream(), f.f32({2, 3}), f.f32({3}), f.f32({2, 3}), 0, {}, 0, f.f32({1}));
       }},
      {"sigmoid_forward", "kinds",
       [](Fixture& f) {
         sigmoid_forward(f.stream(), f.f32({2, 3}), f.f32({3, 2}));
       }},
      {"tanh_backward", "layouts",
       [](Fixture& f) {
         tanh_backward(f.stream(), f.f32({2, 3}), f.f32({2, 3}, Layout::lanes), 0, f.f32({2, 3}));
       }},
      {"concat_forward", "channels",
       [](Fixture& f) {
         concat_forward(f.stream(), f.f32({2, 3}), 2, f.f32({2, 4}));
       }},
      {"concat_forward", "image",
       [](Fixture& f) {
         concat_forward(f.stream(), f.f32({2, 3, 4, 4}), 0, f.f32({2, 3, 4, 5}));
       }},
      {"concat_backward", "first",
       [](Fixture& f) {
         concat_backward(f.stream(), f.f32({2, 3}), -1, 0, f.f32({2, 3}));
       }},
      {"pointwise_loss_forward", "targets",
       [](Fixture& f) {
         pointwise_loss_forward(f.stream(), PointwiseLoss::squared_error, f.f32({2, 3}),
                                f.f32({2, 4}), f.f32({1}));
       }},
      {"pointwise_loss_forward", "no number",
       [](Fixture& f) {
         pointwise_loss_forward(f.stream(), PointwiseLoss::squared_error, f.f32({2, 0}),
                                f.f32({2, 0}), f.f32({1}));
       }},
      {"pointwise_loss_backward", "kinds",
       [](Fixture& f) {
         pointwise_loss_backward(f.stream(), PointwiseLoss::binary_cross_entropy, f.f32({2, 3}),
                                 f.f32({2, 3}), f.f32({1}), 0, f.f32({3, 2}));
       }},
      {"softmax_cross_entropy_forward", "weights",
       [](Fixture& f) {
         softmax_cross_entropy_forward(f.stream(), f.f32({2, 3}), f.i32({2}), f.f32({2, 3}),
                                       f.f32({1}), 0, {}, {f.f32({2})});
       }},
      {"softmax_cross_entropy_forward", "labels",
       [](Fixture& f) {
         softmax_cross_entropy_forward(f.stream(), f.f32({2, 3}), f.i32({3}), f.f32({2, 3}),
                                       f.f32({1}));
       }},
      {"softmax_cross_entropy_forward", "no class",
       [](Fixture& f) {
         softmax_cross_entropy_forward(f.stream(), f.f32({2, 0}), f.i32({2}), f.f32({2, 0}),
                                       f.f32({1}));
       }},
      {"softmax_cross_entropy_backward", "loss",
       [](Fixture& f) {
         softmax_cross_entropy_backward(f.stream(), f.f32({2, 3}), f.i32({2}), f.f32({2}), 0,
                                        f.f32({2, 3}));
       }},
      {"sgd_update", "gradient",
       [](Fixture& f) {
         sgd_update(f.stream(), {}, f.f32({2}), f.f32({5}), f.f32({4}), f.f32({5}));
       }},
      {"sgd_update", "rates",
       [](Fixture& f) {
         sgd_update(f.stream(), {}, f.f32({1}), f.f32({5}), f.f32({5}), f.f32({5}));
       }},
      {"sgd_update", "decays",
       [](Fixture& f) {
         sgd_update(f.stream(), {}, f.f32({2}), f.f32({17}), f.f32({17}), f.f32({17}), {},
                    f.f32({2}));
       }},
      {"ema_update", "value",
       [](Fixture& f) { ema_update(f.stream(), f.f32({1}), f.f32({4}), f.f32({5})); }},
      {"ema_update", "share",
       [](Fixture& f) { ema_update(f.stream(), f.f32({2}), f.f32({5}), f.f32({5})); }},
      {"adamw_update", "gradient",
       [](Fixture& f) {
         adamw_update(f.stream(), {}, f.f32({4}), f.f32({5}), f.f32({4}), f.f32({5}), f.f32({5}));
       }},
      {"adamw_update", "scale",
       [](Fixture& f) {
         adamw_update(f.stream(), {}, f.f32({4}), f.f32({5}), f.f32({5}), f.f32({5}), f.f32({5}),
                      f.f32({2}));
       }},
      {"l2_norm", "rank",
       [](Fixture& f) {
         l2_norm(f.stream(), f.f32({2, 3}), f.f32({1}));
       }},
      {"l2_norm", "norm", [](Fixture& f) { l2_norm(f.stream(), f.f32({5}), f.f32({2})); }},
      {"square_sum", "type", [](Fixture& f) { square_sum(f.stream(), f.f32({5}), f.f32({2})); }},
      {"square_sums", "24 bytes",
       [](Fixture& f) { square_sums(f.stream(), f.f32({5}), f.u8({16}), 5, f.u8({8})); }},
      {"square_sums", "doubles",
       [](Fixture& f) { square_sums(f.stream(), f.f32({5}), f.u8({24}), 5, f.u8({12})); }},
      {"norm_of_sums", "doubles",
       [](Fixture& f) { norm_of_sums(f.stream(), f.u8({12}), f.f32({1})); }},
      {"rows_forward", "shape",
       [](Fixture& f) {
         rows_forward(f.stream(), f.f32({2, 3}, Layout::lanes), f.f32({3, 2}));
       }},
      {"rows_backward", "rank",
       [](Fixture& f) { rows_backward(f.stream(), f.f32({6}), 0, f.f32({6})); }},
      {"sgd_update_rows", "gradient",
       [](Fixture& f) {
         sgd_update_rows(f.stream(), {}, f.f32({2}), f.i32({2}), f.f32({5, 3}), f.f32({3, 3}),
                         f.f32({5, 3}));
       }},
      {"sgd_update_rows", "rows",
       [](Fixture& f) {
         sgd_update_rows(f.stream(), {}, f.f32({2}), f.f32({2}), f.f32({5, 3}), f.f32({2, 3}),
                         f.f32({5, 3}));
       }},
      {"adamw_update_rows", "state",
       [](Fixture& f) {
         adamw_update_rows(f.stream(), {}, f.f32({4}), f.i32({2}), f.f32({5, 3}), f.f32({2, 3}),
                           f.f32({2, 3}), f.f32({5, 3}));
       }},
      {"adamw_count_rows", "corrections",
       [](Fixture& f) {
         adamw_count_rows(f.stream(), {}, f.f32({1}), f.f32({4}), f.i32({2}), f.f32({5}),
                          f.f32({3, 2}));
       }},
      {"gather_rows", "rows",
       [](Fixture& f) {
         gather_rows(f.stream(), f.f32({5, 3}), f.i32({2}), f.f32({3, 3}), f.f32({2}));
       }},
      {"find_rows", "columns",
       [](Fixture& f) { find_rows(f.stream(), f.i32({2}), f.i32({4}), 0, 0, false, f.i32({3})); }},
      {"inverse_norms", "norms",
       [](Fixture& f) {
         inverse_norms(f.stream(), f.f32({2, 3}), f.f32({3}));
       }},
      {"margin_targets", "columns",
       [](Fixture& f) {
         margin_targets(f.stream(), {}, f.f32({2, 3}), f.f32({4, 2}), f.i32({2}), 0, {},
                        f.f32({2, 2}));
       }},
      {"margin_softmax_part", "norms of the classes",
       [](Fixture& f) {
         margin_softmax_part(f.stream(), {}, f.f32({2, 3}), f.f32({2}), f.f32({2}), f.i32({2}), 0,
                             f.f32({2, 2}), false, f.f32({2, 3}));
       }},
      {"margin_softmax_gradient", "merged",
       [](Fixture& f) {
         margin_softmax_gradient(f.stream(), {}, f.f32({2}), f.f32({3}), f.i32({2}), 0,
                                 f.f32({2, 2}), f.f32({2, 2}), f.f32({1}), f.f32({2, 3}));
       }},
      {"margin_angles", "samples",
       [](Fixture& f) {
         margin_angles(f.stream(), {}, f.f32({5}), f.f32({2, 5, 3}), 4, 6, f.f32({4}));
       }},
      {"project_rows", "gradient",
       [](Fixture& f) {
         project_rows(f.stream(), f.f32({2, 3}), f.f32({2}), f.f32({3, 2}));
       }},
      {"softmax_shards_right", "samples",
       [](Fixture& f) {
         softmax_shards_right(f.stream(), f.f32({2, 5, 3}), f.f32({5, 3}), f.f32({5}), 4, 6,
                              f.i32({2}));
       }},
      {"softmax_shard_forward", "part",
       [](Fixture& f) {
         softmax_shard_forward(f.stream(), f.f32({2, 3}), f.i32({2}), 0, f.f32({2, 2}));
       }},
      {"softmax_shards_merge", "merged",
       [](Fixture& f) {
         softmax_shards_merge(f.stream(), f.f32({4, 2, 3}), f.f32({4, 3}));
       }},
      {"softmax_shards_loss", "loss",
       [](Fixture& f) {
         softmax_shards_loss(f.stream(), f.f32({2, 3}), f.f32({2}));
       }},
      {"softmax_shard_backward", "labels",
       [](Fixture& f) {
         softmax_shard_backward(f.stream(), f.f32({2, 3}), f.i32({3}), 0, f.f32({2, 3}), f.f32({1}),
                                0, f.f32({2, 3}));
       }},
      {"normalize_forward", "type",
       [](Fixture& f) {
         normalize_forward(f.stream(), {}, f.f32({1, 1, 2, 2}), f.f32({1, 1, 2, 2}));
       }},
      {"normalize_forward", "deviation",
       [](Fixture& f) {
         normalize_forward(f.stream(), {0, 0}, f.u8({1, 1, 2, 2}), f.f32({1, 1, 2, 2}));
       }},
      {"gather_batch", "another number of samples",
       [](Fixture& f) {
         gather_batch(f.stream(), {Sampler(6, 1)}, f.u8({5, 1, 2, 2}), f.i32({5}), f.u8({16}),
                      f.f32({3, 1, 2, 2}), f.i32({3}));
       }},
      {"gather_batch", "another image",
       [](Fixture& f) {
         gather_batch(f.stream(), {Sampler(5, 1)}, f.u8({5, 1, 2, 2}), f.i32({5}), f.u8({16}),
                      f.f32({3, 1, 2, 3}), f.i32({3}));
       }},
      {"gather_batch", "position",
       [](Fixture& f) {
         gather_batch(f.stream(), {Sampler(5, 1)}, f.u8({5, 1, 2, 2}), f.i32({5}), f.i32({4}),
                      f.f32({3, 1, 2, 2}), f.i32({3}));
       }},
      {"gather_batch", "labels",
       [](Fixture& f) {
         gather_batch(f.stream(), {Sampler(5, 1)}, f.u8({5, 1, 2, 2}), f.i32({5}), f.u8({16}),
                      f.f32({3, 1, 2, 2}), f.i32({2}));
       }},
      {"relayout", "shapes",
       [](Fixture& f) {
         relayout(f.stream(), f.f32({2, 3}), f.f32({2, 4}, Layout::lanes));
       }},
      {"argmax_count", "count",
       [](Fixture& f) {
         argmax_count(f.stream(), f.f32({2, 3}), f.i32({2}), f.i32({3}));
       }},
      {"count_nonfinite", "type",
       [](Fixture& f) {
         count_nonfinite(f.stream(), f.i32({2, 3}), f.i32({1}));
       }},
      {"fill", "type", [](Fixture& f) { fill(f.stream(), 1, f.u8({2})); }},
      {"copy", "kinds", [](Fixture& f) { copy(f.stream(), f.f32({2}), f.i32({2})); }},
      {"accumulate", "type", [](Fixture& f) { accumulate(f.stream(), f.i32({2}), f.i32({2})); }},
      {"cast", "pair", [](Fixture& f) { cast(f.stream(), f.f32({2}), f.f32({2})); }},
      {"cast", "narrow to narrow", [](Fixture& f) { cast(f.stream(), f.f16({2}), f.f16({2})); }},
      {"cast", "shapes", [](Fixture& f) { cast(f.stream(), f.f32({2}), f.f16({3})); }},
      {"reduce", "kinds",
       [](Fixture& f) { reduce_into(f.stream(), ReduceOp::sum, f.f32({2}), f.i32({2})); }},
      {"reduce", "type",
       [](Fixture& f) { reduce_into(f.stream(), ReduceOp::sum, f.u8({2}), f.u8({2})); }},
      {"reduce", "sources",
       [](Fixture& f) {
         const View y = f.f32({2});
         reduce(f.stream(), ReduceOp::sum, {}, {&y, 1});
       }},
      {"add", "shapes", [](Fixture& f) { add(f.stream(), f.f32({2}), f.f32({3}), f.f32({2})); }},
      {"scale", "shapes", [](Fixture& f) { scale(f.stream(), 1, f.f32({2}), 0, f.f32({3})); }},
  };
}

/// Activations of one type, and what has to be f32 beside them, or of their type.
std::vector<Violation> narrow_ones() {
  const Shape x{2, 4, 8, 8}, w{6, 4, 3, 3}, y{2, 6, 6, 6};
  return {
      {"conv2d_forward", "weights of another type",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.f16(x), f.f32(w), {}, kNone, f.f16(y));
       }},
      {"conv2d_forward", "types of x and y",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.f16(x), f.f16(w), {}, kNone, f.f32(y));
       }},
      {"conv2d_forward", "narrow bias",
       [=](Fixture& f) {
         conv2d_forward(f.stream(), {}, f.f16(x), f.f16(w), f.f16({6}), kNone, f.f16(y));
       }},
      {"conv2d_backward_filter", "narrow gradient of weights",
       [=](Fixture& f) {
         conv2d_backward_filter(f.stream(), {}, f.f16(x), f.f16(y), 0, f.f16(w));
       }},
      {"linear_backward_data", "wide weights",
       [](Fixture& f) {
         linear_backward_data(f.stream(), f.f32({3, 4}), f.f16({2, 3}), 0, f.f16({2, 4}));
       }},
      {"bias_forward", "narrow bias",
       [](Fixture& f) {
         bias_forward(f.stream(), f.f16({2, 3}), f.f16({3}), f.f16({2, 3}));
       }},
      {"relu_forward", "u8", [](Fixture& f) { relu_forward(f.stream(), f.u8({2}), f.u8({2})); }},
      {"add", "types", [](Fixture& f) { add(f.stream(), f.f32({2}), f.f16({2}), f.f32({2})); }},
      {"accumulate", "narrow", [](Fixture& f) { accumulate(f.stream(), f.f16({2}), f.f16({2})); }},
      {"softmax_cross_entropy_forward", "narrow",
       [](Fixture& f) {
         softmax_cross_entropy_forward(f.stream(), f.f16({2, 3}), f.i32({2}), f.f16({2, 3}),
                                       f.f32({1}));
       }},
      {"batch_norm_moments", "narrow moments",
       [](Fixture& f) {
         batch_norm_moments(f.stream(), f.f16({4, 3}), f.f16({2, 3}));
       }},
      {"loss_scale_begin", "table",
       [](Fixture& f) {
         loss_scale_begin(f.stream(), f.f32({4}), f.f32({1}), f.f32({2, 7}), f.f32({1}),
                          f.f32({8}));
       }},
      {"loss_scale_end", "interval",
       [](Fixture& f) {
         loss_scale_end(f.stream(), {.growth_interval = 0}, f.f32({1}), f.f32({4}), f.f32({2}),
                        f.f32({2}));
       }},
  };
}

class Contract : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void expect_violations(const std::vector<Violation>& violations) {
    Fixture fixture(GetParam());
    for (const Violation& violation : violations) {
      SCOPED_TRACE(std::string(violation.operation) + ", " + violation.what);
      try {
        violation.call(fixture);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const ContractError& error) {
        const std::string start = std::string(violation.operation) + ": ";
        EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
      }
    }
  }
};

TEST_P(Contract, Convolutions) { expect_violations(convolutions()); }
TEST_P(Contract, Poolings) { expect_violations(poolings()); }
TEST_P(Contract, Layers) { expect_violations(layers()); }
TEST_P(Contract, NarrowOnes) { expect_violations(narrow_ones()); }
TEST_P(Contract, Others) { expect_violations(others()); }

INSTANTIATE_TEST_SUITE_P(Devices, Contract, ::testing::Values(DeviceKind::cpu, DeviceKind::meta),
                         [](const auto& tested) {
                           return std::string(tested.param == DeviceKind::cpu ? "cpu" : "meta");
                         });

TEST(ContractOnCuda, NamesTheLayoutAndTheRemedy) {
  const float value = 0;
  const Shape shape{16, 3, 4, 4};
  EXPECT_NO_THROW(impl::require_nchw("relayout", ConstView(&value, shape)));
  try {
    impl::require_nchw("relayout", ConstView(&value, shape, DType::f32, Layout::lanes));
    FAIL() << "lanes was taken";
  } catch (const ContractError& error) {
    EXPECT_STREQ(
        error.what(),
        "relayout: f32 [16, 3, 4, 4] lanes: the layout lanes is not for GPUs; use --layout "
        "nchw");
  }
}

TEST(ContractOnCuda, TakesChannelsLastWhereThereAreSuch) {
  const float value = 0;
  const Shape shape{16, 3, 4, 4};
  EXPECT_NO_THROW(impl::require_gpu_layout("x", ConstView(&value, shape)));
  EXPECT_NO_THROW(impl::require_gpu_layout("x", {&value, shape, DType::f32, Layout::nhwc}));
  EXPECT_THROW(impl::require_gpu_layout("x", {&value, shape, DType::f32, Layout::lanes}),
               ContractError);
  EXPECT_THROW(impl::require_nchw("x", {&value, shape, DType::f32, Layout::nhwc}), ContractError);
}

// Whatever asks for the layout says that it has none of the channels last.
TEST(ContractOnCpu, HasNoChannelsLast) {
  Fixture f(DeviceKind::cpu);
  const Tensor x = f.f32({2, 3, 4, 4}, Layout::nhwc), y = f.f32({2, 3, 4, 4}, Layout::nhwc);
  const Tensor w = f.f32({3, 3, 1, 1}), b = f.f32({3}), half = f.f32({2, 3, 2, 2}, Layout::nhwc);
  const Tensor winner = f.i32({2, 3, 2, 2}, Layout::nhwc), bytes = f.u8({2, 3, 4, 4});
  const Tensor moments = f.f32({2, 3});
  const std::vector<std::function<void()>> calls = {
      [&] { conv2d_forward(f.stream(), {}, x, w, {}, kNone, y); },
      [&] { conv2d_backward_data(f.stream(), {}, w, y, 0, x); },
      [&] { conv2d_backward_filter(f.stream(), {}, x, y, 0, w); },
      [&] { bias_forward(f.stream(), x, b, y); },
      [&] { bias_backward(f.stream(), x, 0, b); },
      [&] { bias_relu_avg_pool2d_backward(f.stream(), half, x, 0, {}); },
      [&] { avg_pool2d_forward(f.stream(), {}, x, half); },
      [&] { avg_pool2d_backward(f.stream(), {}, half, 0, x); },
      [&] { max_pool2d_forward(f.stream(), {}, x, half, winner); },
      [&] { max_pool2d_backward(f.stream(), {}, half, winner, 0, x); },
      [&] { batch_norm_moments(f.stream(), x, moments); },
      [&] { dropout_forward(f.stream(), {}, x, y); },
      [&] { normalize_forward(f.stream(), {}, bytes, x); },
      [&] {
        relayout(f.stream(), x, f.f32({2, 3, 4, 4}));
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
      ADD_FAILURE() << "call " << i << " took it";
    } catch (const ContractError& error) {
      EXPECT_NE(std::string(error.what()).find("the layout nhwc is for GPUs"), std::string::npos)
          << error.what();
    }
  }
}

// A model of any size runs on the device without memory, and its cost is counted.
TEST(ContractOnMeta, CountsTheCostAndTouchesNothing) {
  Fixture f(DeviceKind::meta);
  WorkTotals totals;
  f.stream().set_totals(&totals);
  const Tensor x = f.f32({1 << 20, 3, 224, 224}), w = f.f32({64, 3, 7, 7});
  const Tensor y = f.f32({1 << 20, 64, 112, 112});
  conv2d_forward(f.stream(), {.stride = {2, 2}, .padding = {3, 3}}, x, w, {}, kNone, y);
  EXPECT_EQ(totals.operations, 1);
  EXPECT_EQ(totals.flops, 2.0 * static_cast<double>(y.view().count()) * 3 * 7 * 7);
  EXPECT_EQ(totals.bytes,
            4.0 * static_cast<double>(x.view().count() + w.view().count() + y.view().count()));
}

}  // namespace
}  // namespace ringlet
