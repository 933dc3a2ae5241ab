#include "nn/check_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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

/// A tensor, and what it counts in a weighted sum.
struct Weighted {
  Variable x;
  ConstView weights;
  void give_gradient(Backward& backward) const {
    if (!backward.wants(x)) return;
    const auto [dx, beta] = backward.target(x);
    if (backward.stream().device().id().kind == DeviceKind::meta) return;
    scale(backward.stream(), 1, weights, beta, dx);
  }
};

/// The sum of both, as far as backward sees it: the check adds up by itself, in double. `other` may
/// be absent.
Variable weighted_sum(const Weighted& y, const Weighted& other = {}) {
  Tape& tape = y.x.tape();
  const Variable sum = tape.make({1}, Layout::nchw);
  fill(tape.stream(), 0, sum.value());
  tape.record("weighted_sum", {y.x, other.x}, sum, [=](Backward& backward) {
    y.give_gradient(backward);
    other.give_gradient(backward);
  });
  return sum;
}

/// A NaN that no arithmetic makes, where nothing was written.
constexpr std::uint32_t kUnwritten = 0x7FA57FA5;

void fill_with_marks(Stream& stream, const View& memory) {
  const std::vector<std::uint32_t> marks(static_cast<std::size_t>(memory.storage()), kUnwritten);
  copy_from_host(stream, marks.data(), memory);
}

std::int64_t count_marks(const std::vector<float>& memory) {
  return std::ranges::count(memory, kUnwritten,
                            [](float number) { return std::bit_cast<std::uint32_t>(number); });
}

/// Numbers in row-major order, whatever the layout was.
struct Numbers {
  std::string name;  // as messages have it
  Shape shape;
  std::vector<float> numbers;
  double largest = 0;
};

class Check {
 public:
  Check(Device& device, Layer& layer, const Shape& input, const GradientCheck& options)
      : device_(device),
        options_(options),
        bench_(layer, options.wants_input),
        registry_(register_model(bench_)),
        plan_(plan(
            [](const Variable& y, const Variable&) {
              return weighted_sum({y, {}});
            },
            input)),
        parameters_(device, registry_, plan_),
        activations_(device, std::max(plan_.activation_bytes,
                                      plan(
                                          [this](const Variable& y, const Variable&) {
                                            return weighted_sum({y, {}}, {bench_.input(), {}});
                                          },
                                          input)
                                          .activation_bytes)),
        tape_(device, activations_, registry_.parameters),
        x_(device, input, DType::f32, options.layout),
        x_weights_(device, input, DType::f32, options.layout),
        seed_(device, {1}) {
    parameters_.initialize(options.seed);
    fill(device.compute(), 1, seed_);
    write_rows(x_, drawn(input.count(), options.seed, kInput));
    write_rows(x_weights_, drawn(input.count(), options.seed, kWeightsOfInput));
  }

  /// What comes out of the layer, and all gradients.
  std::vector<Numbers> passes() {
    std::vector<Numbers> found{first_pass()};
    for (const Parameter* parameter : registry_.parameters) {
      found.push_back(rows_of("the gradient of " + parameter->name, parameter->gradient));
    }
    if (options_.wants_input) found.push_back(gradient_of_input());
    for (const Numbers& rows : found) require_finite(rows);
    second_pass();
    auto first = found.begin() + 1;
    for (const Parameter* parameter : registry_.parameters) {
      require_added(rows_of(first->name, parameter->gradient), first->numbers, *first);
      ++first;
    }
    if (options_.wants_input) {
      require_added(gradient_of_input(), rows_of("", x_weights_).numbers, *first);
    }
    return found;
  }

  /// Against differences. Returns the largest error.
  double compare(const std::vector<Numbers>& found) {
    auto gradient = found.begin() + 1;
    for (const Parameter* parameter : registry_.parameters) compare(parameter->value, *gradient++);
    if (options_.wants_input) compare(x_, *gradient);
    return worst_;
  }

  /// The same in another layout has to be the same.
  void require_alike(const std::vector<Numbers>& here, const std::vector<Numbers>& in_nchw) const {
    for (std::size_t k = 0; k < here.size(); ++k) {
      const std::int64_t i = first_unlike(here[k], in_nchw[k].numbers, in_nchw[k]);
      if (i < 0) continue;
      throw ContractError(fmt::format(
          "check_gradients: {}, element {} of {}, is {:.6g} in lanes and {:.6g} in nchw; a layer "
          "that says that it takes lanes (Layer::takes()) asks x.layout(), or treats all numbers "
          "of View::storage() alike",
          here[k].name, i, here[k].shape.to_string(), here[k].numbers[static_cast<std::size_t>(i)],
          in_nchw[k].numbers[static_cast<std::size_t>(i)]));
    }
  }

 private:
  /// So far an element is moved. Short steps meet fewer bends, and round more.
  static constexpr float kSteps[] = {1e-2F, 3e-3F, 1e-3F, 3e-4F, 1e-4F, 3e-5F, 1e-5F};
  /// Streams of what is drawn.
  static constexpr std::uint64_t kInput = 1, kWeights = 2, kWeightsOfInput = 3, kPlaces = 4;

  Plan plan(const LossFunction& loss, const Shape& input) {
    return plan_training(bench_, registry_, {input, options_.layout}, loss);
  }

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

  Numbers rows_of(std::string name, const ConstView& view) {
    const std::vector<float> memory = memory_of(device_.compute(), view);
    Numbers rows{std::move(name), view.shape(), {}, least_scale_};
    for (std::int64_t i = 0; i < view.count(); ++i) {
      rows.numbers.push_back(memory[static_cast<std::size_t>(offset_of(view, i))]);
      rows.largest = std::max(rows.largest, std::abs(double{rows.numbers.back()}));
    }
    return rows;
  }

  Numbers gradient_of_input() {
    return rows_of("the gradient of the input", tape_.gradient(bench_.input()));
  }

  /// Into memory that is full of marks. Returns what comes out of the layer.
  Numbers first_pass() {
    activations_.reset();
    const View all = activations_.allocate({plan_.activation_bytes / size_of(DType::f32)});
    fill_with_marks(device_.compute(), all);
    fill_with_marks(device_.compute(), parameters_.gradients());
    struct Made {
      std::string layer, operation;
      View output;
    };
    std::vector<Made> made;
    tape_.set_inspector([&](const char* layer, const char* operation, const View& output) {
      if (output.dtype() == DType::f32) made.push_back({layer, operation, output});
    });
    const Variable y = forward();
    tape_.set_inspector({});
    for (const auto& [layer, operation, output] : made) {
      const std::int64_t marks = count_marks(memory_of(device_.compute(), output));
      if (marks == 0) continue;
      throw ContractError(fmt::format(
          "check_gradients: {}{} leaves {} of the {} numbers of its output, {}, unwritten; write "
          "all of View::storage(), in lanes those beyond the batch as well",
          layer.empty() ? "" : "layer " + layer + ": ", operation, marks, output.storage(),
          describe(output)));
    }
    weights_ = Tensor(device_, y.shape(), DType::f32, y.layout());
    write_rows(weights_, drawn(y.shape().count(), options_.seed, kWeights));
    host_weights_ = memory_of(device_.compute(), weights_);
    least_scale_ = 1e-3 * std::sqrt(static_cast<double>(y.shape().count()));
    Numbers output = rows_of("the output", y.value());
    tape_.backward(weighted_sum({y, weights_}), seed_);
    return output;
  }

  /// Once more, with gradients there that the layer is to add to: those of the first pass, and, of
  /// an input that is used behind the layer as well, of that use.
  void second_pass() {
    const Variable y = forward();
    tape_.backward(weighted_sum({y, weights_}, {bench_.input(), x_weights_}), seed_,
                   {.accumulate = true});
  }

  /// Marks, too, are not finite, and neither is what is computed of them.
  static void require_finite(const Numbers& rows) {
    for (std::size_t i = 0; i < rows.numbers.size(); ++i) {
      if (std::isfinite(rows.numbers[i])) continue;
      throw ContractError(fmt::format(
          "check_gradients: {}, element {} of {}, is {}; write all of it where beta is 0, zeros "
          "too, and read nothing there before",
          rows.name, i, rows.shape.to_string(), rows.numbers[i]));
    }
  }

  /// The first element that is not what is expected, as a part of the largest one of `scale`; -1:
  /// there is none.
  std::int64_t first_unlike(const Numbers& found, const std::vector<float>& expected,
                            const Numbers& scale) const {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(double{found.numbers[i]} - double{expected[i]});
      if (!(error <= options_.tolerance * scale.largest)) return static_cast<std::int64_t>(i);
    }
    return -1;
  }

  /// `sum`: `before`, with the gradient of a first pass.
  void require_added(const Numbers& sum, const std::vector<float>& before,
                     const Numbers& first) const {
    std::vector<float> expected = before;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += first.numbers[i];
    const std::int64_t i = first_unlike(sum, expected, first);
    if (i < 0) return;
    const auto at = static_cast<std::size_t>(i);
    throw ContractError(fmt::format(
        "check_gradients: {}, element {} of {}, was {:.6g}, and a pass that is to add {:.6g} makes "
        "it {:.6g}; add to what is there where Backward::target() says that beta is 1",
        first.name, i, first.shape.to_string(), before[at], first.numbers[at], sum.numbers[at]));
  }

  double weighted_output() {
    const std::vector<float> y = memory_of(device_.compute(), forward().value());
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (host_weights_[i] != 0) sum += double{host_weights_[i]} * double{y[i]};
    }
    return sum;
  }

  /// The weighted sum with `number` instead of number `at` of `memory`, which is that of `value`.
  double sum_with(float number, const View& value, std::vector<float>& memory, std::int64_t at) {
    float& place = memory[static_cast<std::size_t>(at)];
    const float before = std::exchange(place, number);
    copy_from_host(device_.compute(), memory.data(), value);
    const double sum = weighted_output();
    place = before;
    copy_from_host(device_.compute(), memory.data(), value);
    return sum;
  }

  /// Of the slopes at number `at` the one that is nearest to `gradient`; it looks no further than
  /// to one that is near enough. Each step has that on both sides together, which is the most exact
  /// one of what is smooth, and that on either side, behind which there may be a bend.
  double nearest_slope(const View& value, std::vector<float>& memory, std::int64_t at,
                       double gradient, double near_enough) {
    const float x = memory[static_cast<std::size_t>(at)];
    const double here = weighted_output();
    double nearest = INFINITY;
    for (const float step : kSteps) {
      const float up = x + step, down = x - step;
      const double above = sum_with(up, value, memory, at);
      const double below = sum_with(down, value, memory, at);
      for (const double slope :
           {(above - below) / (double{up} - down), (above - here) / (double{up} - x),
            (here - below) / (double{x} - down)}) {
        if (std::abs(slope - gradient) < std::abs(nearest - gradient)) nearest = slope;
      }
      if (std::abs(nearest - gradient) <= near_enough) break;
    }
    return nearest;
  }

  /// One element, at random, of each of so many parts of the tensor.
  void compare(const View& value, const Numbers& gradient) {
    std::vector<float> memory = memory_of(device_.compute(), value);
    const std::int64_t count = value.count();
    const std::int64_t parts = std::min<std::int64_t>(count, options_.elements);
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = part * count / parts, end = (part + 1) * count / parts;
      const PhiloxBlock words = philox(options_.seed, kPlaces, static_cast<std::uint64_t>(part));
      const std::int64_t i = begin + words[0] % (end - begin);
      const std::int64_t at = offset_of(value, i);
      const double found = gradient.numbers[static_cast<std::size_t>(i)];
      const double nearest =
          nearest_slope(value, memory, at, found, options_.tolerance * gradient.largest);
      const double error = std::abs(found - nearest) / gradient.largest;
      if (!(error <= options_.tolerance)) {
        throw ContractError(fmt::format(
            "check_gradients: {}, element {} of {}, is {:.6g}, and differences say {:.6g}; look at "
            "what backward writes there",
            gradient.name, i, value.shape().to_string(), found, nearest));
      }
      worst_ = std::max(worst_, error);
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
  Tensor x_, x_weights_, seed_, weights_;
  std::vector<float> host_weights_;
  double least_scale_ = 1;  // of gradients: what rounding leaves of those that are 0
  double worst_ = 0;
};

}  // namespace

double check_gradients(Device& device, Layer& layer, const Shape& input,
                       const GradientCheck& options) {
  require(options.elements >= 1, "check_gradients", "GradientCheck::elements is at least 1");
  require(input.rank() >= 1 && input[0] >= 1, "check_gradients",
          "the input has at least one sample");
  std::vector<Numbers> found;
  double worst = 0;
  {
    Check check(device, layer, input, options);
    found = check.passes();
    worst = check.compare(found);
  }
  const bool has_lanes = device.id().kind == DeviceKind::cpu && input.rank() % 2 == 0;
  if (has_lanes && options.layout == Layout::nchw && layer.takes(Layout::lanes)) {
    GradientCheck in_lanes = options;
    in_lanes.layout = Layout::lanes;
    Check check(device, layer, input, in_lanes);
    check.require_alike(check.passes(), found);
  }
  return worst;
}

double check_gradients(Layer& layer, const Shape& input, const GradientCheck& options) {
  const auto device = open_device({});
  return check_gradients(*device, layer, input, options);
}

}  // namespace ringlet::nn
