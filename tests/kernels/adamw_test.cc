#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/kernels/harness.h"
#include "tests/reference/elements.h"

namespace ringlet::test {
namespace {

constexpr int kAdamSteps = 6;
constexpr std::int64_t kAdamCount = 5003;  // two chunks of a loop over elements, and a rest

struct AdamCase {
  const char* name;
  reference::AdamWHyper hyper;
  float scale;
  bool some_decay;
};

const std::vector<AdamCase> kAdamCases = {
    {"PyTorch's defaults", {}, 1, false},
    {"no decay", {.weight_decay = 0}, 1, false},
    {"strong decay of some", {.learning_rate = 0.1, .weight_decay = 0.5}, 1, true},
    {"a scale", {.learning_rate = 0.01}, 0.125F, false},
    {"short memory and a large epsilon",
     {.learning_rate = 0.01, .beta1 = 0.5, .beta2 = 0.6, .epsilon = 1e-2},
     1,
     true},
    {"no first average", {.learning_rate = 0.01, .beta1 = 0}, 1, false}};

class AdamW : public OperationTest {
 protected:
  static std::vector<float> gradient_of(int step) {
    return random_floats(kAdamCount, 10U + static_cast<std::uint32_t>(step));
  }
  static std::vector<std::uint8_t> decays_of(const AdamCase& c) {
    std::vector<std::uint8_t> decays;
    if (!c.some_decay) return decays;
    for (const auto value : random_labels(decay_blocks(kAdamCount), 5, 2)) {
      decays.push_back(static_cast<std::uint8_t>(value));
    }
    return decays;
  }
  static AdamWSpec spec_of(const reference::AdamWHyper& hyper) {
    return {static_cast<float>(hyper.beta2), static_cast<float>(1 - hyper.beta2),
            static_cast<float>(hyper.epsilon)};
  }
  static std::vector<float> rates_of(const reference::AdamWHyper& hyper, int t) {
    return {static_cast<float>(1 - hyper.beta1),
            static_cast<float>(hyper.learning_rate * hyper.weight_decay),
            static_cast<float>(hyper.learning_rate / (1 - std::pow(hyper.beta1, t))),
            static_cast<float>(1 / std::sqrt(1 - std::pow(hyper.beta2, t)))};
  }

  /// The values after kAdamSteps steps.
  static Tensor train(Device& device, const AdamCase& c) {
    Tensor value = random_tensor(device, {kAdamCount}, 1);
    const std::vector<float> zeros(kAdamCount, 0.0F);
    const Tensor mean = upload(device, {kAdamCount}, zeros);
    const Tensor square = upload(device, {kAdamCount}, zeros);
    const Tensor scale = upload<float>(device, {1}, {c.scale});
    const auto decays = decays_of(c);
    const Tensor table =
        c.some_decay ? upload(device, {decay_blocks(kAdamCount)}, decays) : Tensor();
    for (int t = 1; t <= kAdamSteps; ++t) {
      adamw_update(device.compute(), spec_of(c.hyper), upload(device, {4}, rates_of(c.hyper, t)),
                   value, upload(device, {kAdamCount}, gradient_of(t)), mean, square,
                   c.scale == 1 ? ConstView() : ConstView(scale),
                   c.some_decay ? ConstView(table) : ConstView());
    }
    return value;
  }
};

TEST_P(AdamW, AgreesWithTheReferenceStepByStep) {
  for (const AdamCase& c : kAdamCases) {
    SCOPED_TRACE(c.name);
    auto value = to_double(random_floats(kAdamCount, 1));
    std::vector<double> mean(kAdamCount), square(kAdamCount);
    for (int t = 1; t <= kAdamSteps; ++t) {
      reference::adamw_update(c.hyper, t, value, to_double(gradient_of(t)), mean, square,
                              static_cast<double>(c.scale), decays_of(c));
    }
    expect_close(run([&](Device& device) { return train(device, c); }), value, 2e-6);
  }
}

TEST_P(AdamW, MeansWithoutGradientsEndAtZero) {
  constexpr std::int64_t kFew = 37;
  const reference::AdamWHyper hyper{.beta1 = 0.9, .beta2 = 0.8};
  for (const bool squares : {false, true}) {
    const Tensor mean = run([&](Device& device) {
      const Tensor value = random_tensor(device, {kFew}, 1);
      const Tensor gradient = upload(device, {kFew}, std::vector<float>(kFew, 0.0F));
      const Tensor rates = upload(device, {4}, rates_of(hyper, 1000));
      std::vector<float> before = random_floats(kFew, 3);
      for (float& x : before) x = std::abs(x);
      Tensor means = upload(device, {kFew}, before);
      Tensor squared = upload(device, {kFew}, before);
      for (int step = 0; step < 1000; ++step) {  // 0.9^1000 is 2e-46; rounded, it stays at 7e-45
        adamw_update(device.compute(), spec_of(hyper), rates, value, gradient, means, squared);
      }
      return squares ? std::move(squared) : std::move(means);
    });
    EXPECT_EQ(read(mean), std::vector<float>(kFew, 0.0F)) << squares;
  }
}

TEST_P(AdamW, ANaNStaysOne) {
  Device& device = *devices_[0];
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor value = upload<float>(device, {2}, {1, 2});
  const Tensor mean = upload<float>(device, {2}, {0, 0});
  const Tensor square = upload<float>(device, {2}, {0, 0});
  adamw_update(device.compute(), spec_of({}), upload(device, {4}, rates_of({}, 1)), value,
               upload<float>(device, {2}, {nan, 1}), mean, square);
  for (const Tensor* told : {&value, &mean, &square}) {
    EXPECT_TRUE(std::isnan(read(*told)[0]));
    EXPECT_FALSE(std::isnan(read(*told)[1]));
  }
}

TEST_P(AdamW, NeedsAnEpsilon) {
  Device& device = *devices_[0];
  const Tensor a = upload<float>(device, {4}, {1, 2, 3, 4});
  EXPECT_THROW(adamw_update(device.compute(), {.epsilon = 0}, a, a, a, a, a), ContractError);
}

INSTANTIATE_TEST_SUITE_P(Setups, AdamW, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
