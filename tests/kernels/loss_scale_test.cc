// The scale of the loss under f16: it grows, is halved, has a floor; a step with a broken number is
// skipped by everything that a step changes.
#include "kernels/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/adamw.h"
#include "kernels/running_statistics.h"
#include "kernels/sgd.h"
#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

using Numbers = std::vector<float>;

class LossScaleNumbers : public OperationTest {
 protected:
  struct Ended {
    Numbers norm, state, factor, told;
  };
  Ended end(const Numbers& state, float norm, const LossScaleSpec& spec = {}) {
    Ended ended;
    run([&](Device& device) {
      Stream& stream = device.compute();
      const Tensor on_device = upload(device, {4}, state);
      const Tensor its_norm = upload(device, {1}, Numbers{norm});
      const Tensor factor(device, {2});
      Tensor told(device, {2});
      loss_scale_end(stream, spec, its_norm, on_device, factor, told);
      ended = {test::read(stream, its_norm), test::read(stream, on_device),
               test::read(stream, factor), test::read(stream, told)};
      return told;
    });
    return ended;
  }
};

TEST_P(LossScaleNumbers, AGoodStepIsUnscaledExactly) {
  const Ended ended = end({65536, 7, 3, 5}, 3 * 65536.0F);
  EXPECT_EQ(ended.norm, Numbers{3});
  EXPECT_EQ(ended.factor, (Numbers{1.0F / 65536, 1.0F / 65536}));
  EXPECT_EQ(ended.state, (Numbers{65536, 8, 0, 5}));
  EXPECT_EQ(ended.told, (Numbers{0, 65536}));
}

TEST_P(LossScaleNumbers, ClipsTheUnscaledNorm) {
  const Ended ended = end({1024, 0, 0, 0}, 8 * 1024.0F, {.most = 2});
  EXPECT_NEAR(ended.factor[0], 0.25 / 1024, 1e-9);
  EXPECT_EQ(ended.factor[1], 1.0F / 1024);  // that of the loss's own parameters
  EXPECT_EQ(end({1024, 0, 0, 0}, 1024, {.most = 2}).factor, (Numbers{1.0F / 1024, 1.0F / 1024}));
}

TEST_P(LossScaleNumbers, DoublesAfterSoManyGoodStepsInARow) {
  EXPECT_EQ(end({256, 1998, 0, 2}, 1).state, (Numbers{256, 1999, 0, 2}));
  EXPECT_EQ(end({256, 1999, 0, 2}, 1).state, (Numbers{512, 0, 0, 2}));
  EXPECT_EQ(end({256, 2, 0, 0}, 1, {.growth_interval = 3}).state, (Numbers{512, 0, 0, 0}));
  const float top = 0x1p126F;
  EXPECT_EQ(end({top, 1999, 0, 0}, 1).state, (Numbers{top, 0, 0, 0}));
}

TEST_P(LossScaleNumbers, ABrokenNumberHalvesItAndSkips) {
  for (const float broken : {INFINITY, -INFINITY, NAN}) {
    const Ended ended = end({1024, 77, 1, 4}, broken);
    EXPECT_EQ(ended.factor, (Numbers{0, 0}));
    EXPECT_EQ(ended.state, (Numbers{512, 0, 2, 5}));
    EXPECT_EQ(ended.told, (Numbers{2, 1024}));
    EXPECT_FALSE(std::isfinite(ended.norm[0]));
  }
  EXPECT_EQ(end({2, 0, 0, 0}, NAN).state, (Numbers{1, 0, 1, 1}));
  EXPECT_EQ(end({1, 0, 9, 9}, NAN).state, (Numbers{1, 0, 10, 10}));
}

TEST_P(LossScaleNumbers, BeginsWithTheRowOfTheStepsThatWereMade) {
  // Three rows; five steps of the run were skipped when the newest row was 7, if none had been.
  for (const auto& [newest, row] :
       {std::pair{7.0F, 2}, {6.0F, 1}, {5.0F, 0}, {3.0F, 0}, {9.0F, 2}}) {
    const Tensor rates = run([&, its_newest = newest](Device& device) {
      Tensor numbers(device, {2});
      const Tensor seed = upload(device, {1}, Numbers{0.25F});
      loss_scale_begin(device.compute(), upload(device, {4}, Numbers{4096, 0, 0, 5}),
                       upload(device, {1}, Numbers{its_newest}),
                       upload(device, {3, 2}, Numbers{0, 1, 10, 11, 20, 21}), seed, numbers);
      EXPECT_EQ(test::read(device.compute(), seed), Numbers{1024});
      return numbers;
    });
    const auto first = static_cast<float>(10 * row);
    EXPECT_EQ(read(rates), (Numbers{first, first + 1})) << newest;
  }
}

TEST_P(LossScaleNumbers, AScaleOfZeroChangesNothingWhateverTheGradientHolds) {
  const Numbers gradient{INFINITY, NAN, -INFINITY, 1, 2}, numbers{1, 2, 3, 4, 5};
  run([&](Device& device) {
    Stream& stream = device.compute();
    const Tensor zero = upload(device, {1}, Numbers{0}), g = upload(device, {5}, gradient);
    const Tensor value = upload(device, {5}, numbers), a = upload(device, {5}, numbers),
                 b = upload(device, {5}, numbers);
    sgd_update(stream, {.weight_decay = 0.5F}, upload(device, {2}, Numbers{0.1F, 0.9F}), value, g,
               a, zero);
    adamw_update(stream, {}, upload(device, {4}, Numbers{0.1F, 0.1F, 0.1F, 1}), value, g, a, b,
                 zero);
    for (const Tensor* tensor : {&value, &a, &b}) EXPECT_EQ(test::read(stream, *tensor), numbers);

    const Tensor running = upload(device, {2}, Numbers{1, 2});
    const Tensor counter = upload(device, {1}, std::vector<std::int32_t>{3});
    const Tensor update = upload(device, {5}, Numbers{NAN, NAN, 1, 1, 0});
    const Tensor targets =
        upload(device, {5, 2}, std::vector<std::int32_t>{0, 2, 1, 2, -2, 2, -1, 2, -1, 2});
    running_statistics_commit(stream, update, targets, running, counter, zero);
    EXPECT_EQ(test::read(stream, running), (Numbers{1, 2}));
    EXPECT_EQ(test::read<std::int32_t>(stream, counter), std::vector<std::int32_t>{3});
    return upload(device, {1}, Numbers{1});
  });
}

INSTANTIATE_TEST_SUITE_P(Setups, LossScaleNumbers, nchw_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
