#include "nn/check_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"
#include "nn/parameters.h"
#include "nn/plan.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// Numbers in (-1, 1), a pure function of seed and stream.
std::vector<float> drawn(std::int64_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox(seed, stream, static_cast<std::uint64_t>(i));
    numbers.push_back(2 * uniform01(words[0]) - 1);
  }
  return numbers;
}

/// Where element `index` of a row-major tensor lies in memory.
std::int64_t offset_of(const ConstView& view, std::int64_t index) {
  if (view.layout() != Layout::lanes) return index;
  const std::int64_t features = view.shape().count_per_sample();
  const std::int64_t n = index / features, f = index % features;
  return (n / kLanes * features + f) * kLanes + n % kLanes;
}

std::vector<float> memory_of(Stream& stream, const ConstView& view) {
  std::vector<float> numbers(static_cast<std::size_t>(view.storage()));
  copy_to_host(stream, view, numbers.data());
  return numbers;
}

/// The layer behind an input whose gradient is kept.
class Bench : public Layer {
 public:
  Bench(Layer& layer, bool wants_input) : layer_(layer), wants_input_(wants_input) {}

  Variable forward(Tape& tape, const Variable& x) override {
    input_ = wants_input_ ? tape.input(x.value()) : x;
    return layer_.forward(tape, input_);
  }
  void register_in(Registry& registry, const std::string& prefix) override {
    layer_.register_in(registry, prefix);
  }
  /// Of the last pass.
  const Variable& input() const { return input_; }

 private:
  Layer& layer_;
  bool wants_input_;
  Variable input_;
};

/// sum of weights * y, as far as backward sees it: the check adds up by itself, in double.
Variable weighted_sum(const Variable& y, const ConstView& weights) {
  Tape& tape = y.tape();
  const Variable sum = tape.make({1}, Layout::nchw);
  fill(tape.stream(), 0, sum.value());
  tape.record("weighted_sum", {y}, sum, [=](Backward& backward) {
    const auto [dy, beta] = backward.target(y);
    if (backward.stream().device().id().kind == DeviceKind::meta) return;
    scale(backward.stream(), 1, weights, beta, dy);
  });
  return sum;
}

class Check {
 public:
  Check(Device& device, Layer& layer, const Shape& input, const GradientCheck& options)
      : device_(device),
        options_(options),
        bench_(layer, options.wants_input),
        registry_(register_model(bench_)),
        plan_(
            plan_training(bench_, registry_, {input, options.layout},
                          [](const Variable& y, const Variable&) { return weighted_sum(y, {}); })),
        parameters_(device, registry_, plan_),
        activations_(device, plan_.activation_bytes),
        tape_(device, activations_, registry_.parameters),
        x_(device, input, DType::f32, options.layout),
        dx_(device, input, DType::f32, options.layout),
        seed_(device, {1}) {
    parameters_.initialize(options.seed);
    fill(device.compute(), 1, seed_);
    write_rows(x_, drawn(input.count(), options.seed, 1));
  }

  double run() {
    backward();
    for (const Parameter* parameter : registry_.parameters) {
      compare(parameter->name, parameter->value, parameter->gradient);
    }
    if (options_.wants_input) compare("the input", x_, dx_);
    return worst_;
  }

 private:
  void write_rows(const View& view, const std::vector<float>& rows) {
    std::vector<float> memory(static_cast<std::size_t>(view.storage()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      memory[static_cast<std::size_t>(offset_of(view, static_cast<std::int64_t>(i)))] = rows[i];
    }
    copy_from_host(device_.compute(), memory.data(), view);
  }

  Variable forward() {
    tape_.begin({.seed = options_.seed});
    return bench_.forward(tape_, tape_.constant(x_));
  }

  void backward() {
    const Variable y = forward();
    weights_ = Tensor(device_, y.shape(), DType::f32, y.layout());
    write_rows(weights_, drawn(y.shape().count(), options_.seed, 2));
    host_weights_ = memory_of(device_.compute(), weights_);
    least_scale_ = 1e-3 * std::sqrt(static_cast<double>(y.shape().count()));
    tape_.backward(weighted_sum(y, weights_), seed_);
    if (options_.wants_input) copy(device_.compute(), tape_.gradient(bench_.input()), dx_);
  }

  double weighted_output() {
    const std::vector<float> y = memory_of(device_.compute(), forward().value());
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (host_weights_[i] != 0) sum += double{host_weights_[i]} * double{y[i]};
    }
    return sum;
  }

  double difference(const View& value, std::vector<float>& memory, std::int64_t at, float step) {
    float& number = memory[static_cast<std::size_t>(at)];
    const float before = number;
    const auto sum_at = [&](float there) {
      number = there;
      copy_from_host(device_.compute(), memory.data(), value);
      return std::pair{weighted_output(), double{there}};
    };
    const auto [above, up] = sum_at(before + step);
    const auto [below, down] = sum_at(before - step);
    number = before;
    copy_from_host(device_.compute(), memory.data(), value);
    return (above - below) / (up - down);
  }

  void compare(const std::string& name, const View& value, const View& gradient) {
    const std::vector<float> gradients = memory_of(device_.compute(), gradient);
    std::vector<float> memory = memory_of(device_.compute(), value);
    const std::int64_t count = value.count();
    const std::int64_t stride = std::max<std::int64_t>(1, count / options_.elements);
    double largest = least_scale_;
    for (const float number : gradients) largest = std::max(largest, std::abs(double{number}));
    for (std::int64_t i = 0; i < count; i += stride) {
      const std::int64_t at = offset_of(value, i);
      const double found = gradients[static_cast<std::size_t>(at)];
      double nearest = 0, least = INFINITY;
      for (const float step : {1e-2F, 1e-3F}) {
        const double expected = difference(value, memory, at, step);
        const double error = std::abs(found - expected) / largest;
        if (!(error < least)) continue;
        least = error;
        nearest = expected;
      }
      if (!(least <= options_.tolerance)) {
        throw ContractError(fmt::format(
            "check_gradients: the gradient of {}, element {} of {}, is {:.6g}, and differences say "
            "{:.6g}; look at what backward writes there",
            name, i, value.shape().to_string(), found, nearest));
      }
      worst_ = std::max(worst_, least);
    }
  }

  Device& device_;
  GradientCheck options_;
  Bench bench_;
  Registry registry_;
  Plan plan_;
  Parameters parameters_;
  Arena activations_;
  Tape tape_;
  Tensor x_, dx_, seed_, weights_;
  std::vector<float> host_weights_;
  double least_scale_ = 1;  // of gradients: what rounding leaves of those that are 0
  double worst_ = 0;
};

}  // namespace

double check_gradients(Device& device, Layer& layer, const Shape& input,
                       const GradientCheck& options) {
  return Check(device, layer, input, options).run();
}

double check_gradients(Layer& layer, const Shape& input, const GradientCheck& options) {
  const auto device = open_device({});
  return check_gradients(*device, layer, input, options);
}

}  // namespace ringlet::nn
