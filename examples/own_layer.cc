// A layer of one's own: PReLU with one learnt slope, y = max(x, 0) + a min(x, 0). Its forward pass
// computes and records how backward goes; here both are plain loops over host memory, as the CPU
// has it. Its gradients are then checked against differences of what comes out.
//
//   dL/dx = dL/dy (x > 0 ? 1 : a)        dL/da = sum of dL/dy min(x, 0)
#include <cstdio>

#include "nn/check_gradients.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"

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
  /// All numbers alike, in whatever order they lie. A layer that does not say this is given rows.
  bool takes(Layout /*layout*/) const override { return true; }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    registry.add(slope_, prefix + "slope");
  }

 private:
  /// The dry run that plans memory goes through every layer with shapes and nothing behind them.
  static bool has_memory(const Device& device) { return device.id().kind != DeviceKind::meta; }

  static void undo(nn::Backward& backward, const nn::Variable& x, const nn::Variable& slope,
                   const nn::Variable& y) {
    // Nobody wants the gradient of data, where the layer is the first one, or of a frozen slope.
    const auto target = [&](const nn::Variable& v) {
      return backward.wants(v) ? backward.target(v) : nn::Backward::Target();
    };
    const auto [dx, beta_x] = target(x);  // beta: 0 overwrites, 1 adds to what is there
    const auto [da, beta_a] = target(slope);
    if (!has_memory(backward.stream().device())) return;
    const float a = *slope.value().f32();
    const float *in = x.value().f32(), *dy = backward.gradient(y).f32();
    float sum = 0;
    for (std::int64_t i = 0; i < x.value().storage(); ++i) {
      const float own = dy[i] * (in[i] > 0 ? 1 : a);
      if (!dx.absent()) dx.f32()[i] = beta_x == 0 ? own : dx.f32()[i] + own;
      if (in[i] < 0) sum += dy[i] * in[i];
    }
    if (!da.absent()) *da.f32() = beta_a == 0 ? sum : *da.f32() + sum;
  }

  nn::Parameter slope_{{1}, nn::Initializer::constant(0.25F)};
};

int main() {  // NOLINT(bugprone-exception-escape): whatever goes wrong may end an example
  nn::Sequential net;
  net.add<nn::Linear>("fc1", 6, 5);
  net.add<PReLU>("prelu");
  net.add<nn::Linear>("fc2", 5, 3);
  const nn::GradientCheck check{.tolerance = 1e-2};
  const double worst = nn::check_gradients(net, {8, 6}, check);  // throws where one is wrong
  std::printf("largest error of a gradient: %.1e of the largest one\n", worst);
  return worst < check.tolerance ? 0 : 1;
}
