#include "bench/kernels/memory_kernels.h"

#include <cstddef>
#include <utility>

#include "kernels/adamw.h"
#include "kernels/batch_norm.h"
#include "kernels/bias.h"
#include "kernels/classify.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/ema.h"
#include "kernels/gather_batch.h"
#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "kernels/normalize.h"
#include "kernels/pool2d.h"
#include "kernels/sgd.h"
#include "kernels/softmax_cross_entropy.h"

namespace ringlet::bench {

namespace {

/// Numbers that look like noise; the same each time.
class Noise {
 public:
  std::uint32_t next() {
    state_ = state_ * 1664525U + 1013904223U;
    return state_ >> 8U;
  }

 private:
  std::uint32_t state_ = 12345;
};

/// Fills the memory of `view` with what `make` gives, one element after the other.
template <class T, class F>
void fill_with(Device& device, const View& view, F make) {
  std::vector<T> values(static_cast<std::size_t>(view.storage()));
  for (T& value : values) value = make();
  copy_from_host(device.compute(), values.data(), view);
  device.compute().synchronize();
}

void fill_with_floats(Device& device, const View& view) {
  fill_with<float>(device, view, [noise = Noise()]() mutable {
    return static_cast<float>(noise.next()) * 0x1p-24F - 0.5F;
  });
}

/// Builds the list. Each call is run once; its bytes are those that dispatch() counts.
class List {
 public:
  explicit List(Stream& stream) : stream_(stream) {}

  void add(std::string name, std::function<void()> run) {
    WorkTotals totals;
    stream_.set_totals(&totals);
    run();
    stream_.set_totals(nullptr);
    kernels_.push_back({std::move(name), std::move(run), totals.bytes});
  }

  std::vector<MemoryKernel> take() { return std::move(kernels_); }

 private:
  Stream& stream_;
  std::vector<MemoryKernel> kernels_;
};

void add_inputs(TensorStore& store, List& list, std::int64_t batch) {
  Stream& s = store.device().compute();
  constexpr std::int64_t kImages = 60000;  // as many as Fashion-MNIST has
  const View images = store.bytes({kImages, 1, 28, 28});
  const View labels = store.integers({kImages}, 10);
  const View position = store.bytes(batch_position_shape());
  const BatchPosition start{};
  copy_from_host(s, &start, position);
  const View x = store.floats({batch, 1, 28, 28});
  const View raw = store.bytes({batch, 1, 28, 28});
  const View y = store.integers({batch}, 10);
  const GatherSpec spec{Sampler(kImages, 1), {0, 1}};
  list.add("gather batch", [=, &s] { gather_batch(s, spec, images, labels, position, x, y); });
  list.add("normalize", [=, &s] { normalize_forward(s, {0.3F, 0.35F}, raw, x); });
}

void add_elementwise(TensorStore& store, List& list, std::int64_t batch) {
  Stream& s = store.device().compute();
  const Shape shape{batch, 20, 26, 26};
  const View a = store.floats(shape), b = store.floats(shape), c = store.floats(shape);
  const View bias = store.floats({20}), bias_gradient = store.floats({20});
  list.add("relu forward", [=, &s] { relu_forward(s, a, b); });
  list.add("relu backward", [=, &s] { relu_backward(s, a, b, 0, c); });
  list.add("bias forward", [=, &s] { bias_forward(s, a, bias, b); });
  list.add("bias backward", [=, &s] { bias_backward(s, a, 0, bias_gradient); });
  list.add("relu and bias backward", [=, &s] { bias_relu_backward(s, a, b, c, 0, bias_gradient); });
  list.add("dropout forward", [=, &s] { dropout_forward(s, {}, a, b); });
  list.add("add", [=, &s] { add(s, a, b, c); });
  list.add("scale", [=, &s] { scale(s, 0.5F, a, 0, b); });
}

void add_pooling(TensorStore& store, List& list, std::int64_t batch) {
  Stream& s = store.device().compute();
  const View x = store.floats({batch, 20, 26, 26}), dx = store.floats({batch, 20, 26, 26});
  const View y = store.floats({batch, 20, 13, 13}), dy = store.floats({batch, 20, 13, 13});
  const View winner = store.integers({batch, 20, 13, 13}, 1), bias_gradient = store.floats({20});
  list.add("average pool forward", [=, &s] { avg_pool2d_forward(s, {}, x, y); });
  list.add("average pool backward", [=, &s] { avg_pool2d_backward(s, {}, dy, 0, dx); });
  list.add("average pool, relu and bias backward",
           [=, &s] { bias_relu_avg_pool2d_backward(s, dy, x, 0, bias_gradient); });
  list.add("maximum pool forward", [=, &s] { max_pool2d_forward(s, {}, x, y, winner); });
  list.add("maximum pool backward", [=, &s] { max_pool2d_backward(s, {}, dy, winner, 0, dx); });
}

/// Forward and backward of a step, apart, with its ReLU; `sums, y and dz` is behind a residual.
void add_batch_norm(TensorStore& store, List& list, std::int64_t batch, DType dtype) {
  Stream& s = store.device().compute();
  constexpr std::int64_t kChannels = 64, kSide = 32;
  const Shape shape{batch, kChannels, kSide, kSide};
  const Layout layout = store.device().id().kind == DeviceKind::cuda ? Layout::nhwc : Layout::nchw;
  const auto activations = [&] { return store.activations(shape, dtype, layout); };
  const View x = activations(), residual = activations(), y = activations();
  const View dy = activations(), dz = activations(), dx = activations();
  const View moments = store.floats({2, kChannels}), sums = store.floats({2, kChannels});
  const View weight = store.floats({kChannels}), bias = store.floats({kChannels});
  batch_norm_moments(s, x, moments);
  const BatchNorm norm{.activation = Activation::relu,
                       .count = static_cast<double>(x.count()) / kChannels,
                       .x = x,
                       .statistics = moments,
                       .weight = weight,
                       .bias = bias};
  const std::string of = std::string(" (") + name_of(layout) + ", " + name_of(dtype) + ")";
  list.add("batch norm moments" + of, [=, &s] { batch_norm_moments(s, x, moments); });
  list.add("batch norm forward" + of, [=, &s] { batch_norm_forward(s, norm, {}, y); });
  list.add("batch norm forward, residual" + of,
           [=, &s] { batch_norm_forward(s, norm, residual, y); });
  list.add("batch norm sums" + of,
           [=, &s] { batch_norm_backward_sums(s, norm, {}, dy, {}, sums); });
  list.add("batch norm sums, y and dz" + of,
           [=, &s] { batch_norm_backward_sums(s, norm, y, dy, dz, sums); });
  list.add("batch norm data" + of, [=, &s] { batch_norm_backward_data(s, norm, dy, sums, 0, dx); });
}

void add_loss(TensorStore& store, List& list, std::int64_t batch, std::int64_t classes) {
  Stream& s = store.device().compute();
  const View logits = store.floats({batch, classes}),
             probabilities = store.floats({batch, classes});
  const View labels = store.integers({batch}, static_cast<std::int32_t>(classes));
  const View loss = store.floats({1}), seed = store.floats({1});
  const View count = store.integers({2 * classes}, 1), gradient = store.floats({batch, classes});
  const std::string of = " of " + std::to_string(classes);
  list.add("softmax cross-entropy forward" + of,
           [=, &s] { softmax_cross_entropy_forward(s, logits, labels, probabilities, loss); });
  list.add("softmax cross-entropy backward" + of, [=, &s] {
    softmax_cross_entropy_backward(s, probabilities, labels, seed, 0, gradient);
  });
  list.add("argmax count" + of, [=, &s] { argmax_count(s, logits, labels, count); });
}

void add_update(TensorStore& store, List& list, std::int64_t parameters) {
  Stream& s = store.device().compute();
  const View value = store.floats({parameters}), gradient = store.floats({parameters});
  const View velocity = store.floats({parameters}), rates = store.floats({2});
  constexpr float kRates[2] = {1e-3F, 0.9F};
  copy_from_host(s, kRates, rates);
  const std::string of = " of " + std::to_string(parameters);
  list.add("sgd" + of, [=, &s] { sgd_update(s, {5e-4F, true}, rates, value, gradient, velocity); });
  const View squares = store.floats({parameters}), adam_rates = store.floats({4});
  fill(s, 0.25F, squares);  // nowhere below 0
  constexpr float kAdamRates[4] = {0.1F, 1e-5F, 1e-3F, 1};
  copy_from_host(s, kAdamRates, adam_rates);
  const View norm = store.floats({1}), scale = store.floats({1});
  const View decays = store.bytes({decay_blocks(parameters)});
  list.add("norm and clipping factor" + of, [=, &s] { l2_norm(s, gradient, norm, {1, scale}); });
  list.add("sgd, scaled, some decay" + of, [=, &s] {
    sgd_update(s, {5e-4F, true}, rates, value, gradient, velocity, scale, decays);
  });
  list.add("moving average" + of, [=, &s] { ema_update(s, rates.slice(0, 1), value, velocity); });
  list.add("adamw" + of,
           [=, &s] { adamw_update(s, {}, adam_rates, value, gradient, velocity, squares); });
  list.add("adamw, scaled, some decay" + of, [=, &s] {
    adamw_update(s, {}, adam_rates, value, gradient, velocity, squares, scale, decays);
  });
}

}  // namespace

View TensorStore::tensor(const Shape& shape, DType dtype, Layout layout) {
  tensors_.push_back(std::make_unique<Tensor>(device_, shape, dtype, layout));
  return tensors_.back()->view();
}

View TensorStore::floats(const Shape& shape) {
  const View view = tensor(shape, DType::f32);
  fill_with_floats(device_, view);
  return view;
}

View TensorStore::activations(const Shape& shape, DType dtype, Layout layout) {
  const View view = tensor(shape, dtype, layout);
  if (dtype == DType::f32) {
    fill_with_floats(device_, view);
    return view;
  }
  const Tensor exact(device_, shape, DType::f32, layout);
  fill_with_floats(device_, exact);
  cast(device_.compute(), exact, view);
  device_.compute().synchronize();
  return view;
}

View TensorStore::integers(const Shape& shape, std::int32_t below) {
  const View view = tensor(shape, DType::i32);
  fill_with<std::int32_t>(device_, view, [noise = Noise(), below]() mutable {
    return static_cast<std::int32_t>(noise.next() % static_cast<std::uint32_t>(below));
  });
  return view;
}

View TensorStore::bytes(const Shape& shape) {
  const View view = tensor(shape, DType::u8);
  fill_with<std::uint8_t>(device_, view, [noise = Noise()]() mutable {
    return static_cast<std::uint8_t>(noise.next() % 256U);
  });
  return view;
}

std::vector<MemoryKernel> memory_kernels(TensorStore& store, std::int64_t batch) {
  List list(store.device().compute());
  add_inputs(store, list, batch);
  add_elementwise(store, list, batch);
  add_pooling(store, list, batch);
  if (batch <= kMostNormed) {
    add_batch_norm(store, list, batch, DType::f32);
    add_batch_norm(store, list, batch, DType::bf16);
  }
  add_loss(store, list, batch, 10);
  add_loss(store, list, batch, 1000);
  add_update(store, list, 129'068);     // LeNet
  add_update(store, list, 11'689'512);  // ResNet-18
  return list.take();
}

}  // namespace ringlet::bench
