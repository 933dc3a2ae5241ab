// A layer of one's own: PReLU with one learnt slope, y = max(x, 0) + a min(x, 0). Its forward pass
// computes and records how backward goes; here both are plain loops over host memory, as the CPU
// has it. Its gradients are then checked against differences of the loss, parameter by parameter.
//
//   dL/dx = dL/dy (x > 0 ? 1 : a)        dL/da = sum of dL/dy min(x, 0)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "kernels/host_copy.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "nn/parameters.h"

using namespace ringlet;

class PReLU : public nn::Layer {
 public:
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    const nn::Variable slope = tape.parameter(slope_);
    const nn::Variable y = tape.make(x.shape(), x.layout());
    if (has_memory(tape.device())) {
      const float a = *slope.value().f32();
      const float* in = x.value().f32();
      float* out = y.value().f32();
      for (std::int64_t i = 0; i < x.value().storage(); ++i) out[i] = in[i] > 0 ? in[i] : a * in[i];
    }
    tape.record("prelu", {x, slope}, y,
                [=](nn::Backward& backward) { undo(backward, x, slope, y); });
    return y;
  }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    registry.add(slope_, prefix + "slope");
  }

 private:
  /// The dry run that plans memory goes through every layer with shapes and nothing behind them.
  static bool has_memory(const Device& device) { return device.id().kind != DeviceKind::meta; }

  static void undo(nn::Backward& backward, const nn::Variable& x, const nn::Variable& slope,
                   const nn::Variable& y) {
    const auto [dx, beta_x] = backward.target(x);  // beta: 0 overwrites, 1 adds to what is there
    const auto [da, beta_a] = backward.target(slope);
    if (!has_memory(backward.stream().device())) return;
    const float a = *slope.value().f32();
    const float *in = x.value().f32(), *dy = backward.gradient(y).f32();
    float sum = 0;
    for (std::int64_t i = 0; i < dx.storage(); ++i) {
      const float own = dy[i] * (in[i] > 0 ? 1 : a);
      dx.f32()[i] = beta_x == 0 ? own : dx.f32()[i] + own;
      if (in[i] < 0) sum += dy[i] * in[i];
    }
    *da.f32() = beta_a == 0 ? sum : *da.f32() + sum;
  }

  nn::Parameter slope_{{1}, nn::Initializer::constant(0.25F)};
};

int main() {  // NOLINT(bugprone-exception-escape): whatever goes wrong may end an example
  constexpr std::int64_t kSamples = 8, kFeatures = 6, kClasses = 3;
  nn::Sequential net;
  net.add<nn::Linear>("fc1", kFeatures, 5);
  net.add<PReLU>("prelu");
  net.add<nn::Linear>("fc2", 5, kClasses);

  // What the trainer does for a replica: plan, memory, tape.
  const auto device = open_device({});
  const nn::Registry registry = nn::register_model(net);
  const nn::LossFunction loss_of = nn::softmax_cross_entropy;
  const nn::Plan plan = nn::plan_training(net, registry, {{kSamples, kFeatures}}, loss_of);
  nn::Parameters parameters(*device, registry, plan);
  parameters.initialize(/*seed=*/1);
  Arena activations(*device, plan.activation_bytes);
  nn::Tape tape(*device, activations, registry.parameters);

  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kSamples * kFeatures; ++i) {
    images.push_back(std::sin(static_cast<float>(i) * 1.7F));
  }
  for (std::int32_t i = 0; i < kSamples; ++i) labels.push_back(i % kClasses);
  const auto forward = [&] {
    tape.begin({});
    const auto x = tape.constant({images.data(), {kSamples, kFeatures}, DType::f32});
    const auto wanted = tape.constant({labels.data(), {kSamples}, DType::i32});
    return loss_of(net.forward(tape, x), wanted);
  };
  float one = 1;
  tape.backward(forward(), {&one, {1}, DType::f32});

  // Central differences in float: their own error is about 1e-4 of the loss's slope.
  constexpr float kStep = 5e-3F, kTolerance = 1e-3F;
  float worst = 0;
  for (const nn::Parameter* parameter : registry.parameters) {
    for (std::int64_t i = 0; i < parameter->shape.count(); ++i) {
      float& value = parameter->value.f32()[i];
      const float before = value;
      const auto loss_at = [&](float there) {
        value = there;
        return read_scalar(tape.stream(), forward().value());
      };
      const float difference = (loss_at(before + kStep) - loss_at(before - kStep)) / (2 * kStep);
      value = before;
      worst = std::max(worst, std::abs(parameter->gradient.f32()[i] - difference));
    }
  }
  std::printf("%zu parameters, largest error of a gradient %.1e\n", registry.parameters.size(),
              static_cast<double>(worst));
  return worst < kTolerance ? 0 : 1;
}
