#include "kernels/sgd.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kCount = 5003;  // two chunks of a loop over elements, and a rest

struct SgdCase {
  const char* name;
  SgdSpec spec;
  float momentum;
};

const std::vector<SgdCase> kCases = {
    {"plain", {}, 0},
    {"momentum", {}, 0.9F},
    {"nesterov", {.nesterov = true}, 0.9F},
    {"weight_decay", {.weight_decay = 0.1F}, 0},
    {"everything", {.weight_decay = 0.1F, .nesterov = true}, 0.8F}};

class Sgd : public OperationTest {
 protected:
  static float rate(int step) { return 0.1F * static_cast<float>(step + 1); }
  static std::vector<float> gradient_of(int step) {
    return random_floats(kCount, 10U + static_cast<std::uint32_t>(step));
  }

  /// The values after kSteps steps whose learning rate changes.
  static Tensor train(Device& device, const SgdCase& c) {
    Tensor value = random_tensor(device, {kCount}, 1);
    const Tensor velocity = upload(device, {kCount}, std::vector<float>(kCount, 0.0F));
    for (int step = 0; step < kSteps; ++step) {
      sgd_update(device.compute(), c.spec, upload<float>(device, {2}, {rate(step), c.momentum}),
                 value, upload(device, {kCount}, gradient_of(step)), velocity);
    }
    return value;
  }
};

TEST_P(Sgd, AgreesWithTheReferenceStepByStep) {
  for (const SgdCase& c : kCases) {
    SCOPED_TRACE(c.name);
    auto value = to_double(random_floats(kCount, 1));
    std::vector<double> velocity(kCount);
    for (int step = 0; step < kSteps; ++step) {
      reference::sgd_update(c.spec, static_cast<double>(rate(step)),
                            static_cast<double>(c.momentum), value, to_double(gradient_of(step)),
                            velocity);
    }
    expect_close(run([&](Device& device) { return train(device, c); }), value, 1e-6);
  }
}

TEST_P(Sgd, ScalesTheGradientAndDecaysWhereTheTableSaysSo) {
  const SgdCase c{"everything", {.weight_decay = 0.1F, .nesterov = true}, 0.8F};
  constexpr float kScale = 0.375F;
  std::vector<std::uint8_t> decays;
  for (const auto decay : random_labels(decay_blocks(kCount), 5, 2)) {
    decays.push_back(static_cast<std::uint8_t>(decay));
  }
  for (const bool keeps : {true, false}) {
    const float momentum = keeps ? c.momentum : 0;
    auto value = to_double(random_floats(kCount, 1));
    std::vector<double> velocity(kCount);
    for (int step = 0; step < kSteps; ++step) {
      reference::sgd_update(c.spec, static_cast<double>(rate(step)), static_cast<double>(momentum),
                            value, to_double(gradient_of(step)), velocity,
                            static_cast<double>(kScale), decays);
    }
    const Tensor trained = run([&](Device& device) {
      Tensor own = random_tensor(device, {kCount}, 1);
      const Tensor kept = upload(device, {kCount}, std::vector<float>(kCount, 0.0F));
      for (int step = 0; step < kSteps; ++step) {
        sgd_update(device.compute(), c.spec, upload<float>(device, {2}, {rate(step), momentum}),
                   own, upload(device, {kCount}, gradient_of(step)), keeps ? kept.view() : View(),
                   upload<float>(device, {1}, {kScale}),
                   upload(device, {decay_blocks(kCount)}, decays));
      }
      return own;
    });
    expect_close(trained, value, 1e-6);
  }
}

TEST_P(Sgd, AScaleOfOneChangesNoBit) {
  const SgdCase& c = kCases.back();
  const auto with_scale = run([&](Device& device) {
    Tensor value = random_tensor(device, {kCount}, 1);
    const Tensor velocity = upload(device, {kCount}, std::vector<float>(kCount, 0.0F));
    for (int step = 0; step < kSteps; ++step) {
      sgd_update(device.compute(), c.spec, upload<float>(device, {2}, {rate(step), c.momentum}),
                 value, upload(device, {kCount}, gradient_of(step)), velocity,
                 upload<float>(device, {1}, {1}));
    }
    return value;
  });
  EXPECT_EQ(read(with_scale), read(run([&](Device& device) { return train(device, c); })));
}

TEST_P(Sgd, WithoutVelocityIsPlainDescentAndRefusesMomentum) {
  Device& device = *devices_[0];
  Stream& stream = device.compute();
  const Tensor value = upload<float>(device, {2}, {1, 2});
  const Tensor gradient = upload<float>(device, {2}, {10, -10});
  const SgdSpec decay{.weight_decay = 1};
  sgd_update(stream, decay, upload<float>(device, {2}, {0.5F, 0}), value, gradient, {});
  EXPECT_EQ(read(value), (std::vector<float>{1 - 0.5F * 11, 2 + 0.5F * 8}));
  const Tensor with_momentum = upload<float>(device, {2}, {0.5F, 0.9F});
  if (on_cuda()) {  // cannot throw
    sgd_update(stream, decay, with_momentum, value, gradient, {});
    for (const float shown : read(value)) EXPECT_TRUE(std::isnan(shown));
  } else {
    EXPECT_THROW(sgd_update(stream, decay, with_momentum, value, gradient, {}), ContractError);
  }
}

TEST_P(Sgd, AVelocityWithoutGradientsEndsAtZero) {
  constexpr std::int64_t kFew = 37;
  const Tensor velocity = run([](Device& device) {
    const Tensor value = random_tensor(device, {kFew}, 1);
    const Tensor gradient = upload(device, {kFew}, std::vector<float>(kFew, 0.0F));
    const Tensor rates = upload<float>(device, {2}, {0.1F, 0.9F});
    Tensor kept = upload(device, {kFew}, random_floats(kFew, 3));
    for (int step = 0; step < 1000; ++step) {  // 0.9^1000 is 2e-46; rounded, it stays at 7e-45
      sgd_update(device.compute(), {}, rates, value, gradient, kept);
    }
    return kept;
  });
  EXPECT_EQ(read(velocity), std::vector<float>(kFew, 0.0F));
}

INSTANTIATE_TEST_SUITE_P(Setups, Sgd, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
