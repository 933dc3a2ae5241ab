// nn::margin_softmax() over several blocks of classes, with its products kept and made again, and
// over the passes of a step in exact mode.
#include "nn/ops/margin_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/axis.h"
#include "nn/layers/class_centres.h"
#include "nn/layers/stateless.h"
#include "nn/parameters.h"
#include "tests/reference/margin_softmax.h"
#include "tests/support/tensors.h"

namespace ringlet::nn {
namespace {

constexpr std::int64_t kSamples = 7, kClasses = 9000, kSize = 5;  // three blocks
const MarginSpec kSpec{.scale = 16, .m2 = 0.5, .guard = MarginGuard::hard};

/// Gradients of the sum of the losses.
struct Found {
  std::vector<float> dx, dw;
};

std::vector<std::int32_t> labels() {
  return {0, 4095, 4096, 8191, 8192, 8999, 4095};  // at the blocks' ends; one comes twice
}

Found gradients_of(std::int64_t kept, const std::vector<float>& x, const std::vector<float>& w) {
  const auto device = open_device({});
  ClassCentres model(std::make_unique<Flatten>(), kClasses, kSize);
  const Registry registry = register_model(model);
  const auto loss = [&](Tape& tape, const Batch& batch) {
    return margin_softmax(model.forward(tape, batch[kImages]), model.centres(), batch[kTargets],
                          kSpec, {}, kept);
  };
  const Plan plan = plan_training(registry,
                                  {.tensors = {{kImages, {kSamples, kSize, 1, 1}},
                                               {kTargets, {kSamples}, Layout::nchw, DType::i32}}},
                                  loss);
  const Parameters parameters(*device, registry, plan);
  Arena arena(*device, 64 << 20);
  Tape tape(*device, arena, registry.parameters);
  copy_from_host(device->compute(), w.data(), model.centres().value);
  const Tensor images(*device, {kSamples, kSize, 1, 1}), targets(*device, {kSamples}, DType::i32),
      seed(*device, {1});
  copy_from_host(device->compute(), x.data(), images);
  copy_from_host(device->compute(), labels().data(), targets);
  fill(device->compute(), 1, seed);
  tape.begin({});
  Batch batch;
  const Variable embeddings = tape.input(images);
  batch.add(kImages, embeddings);
  batch.add(kTargets, tape.constant(targets));
  tape.backward(loss(tape, batch), seed);
  return {test::read<float>(device->compute(), tape.gradient(embeddings)),
          test::read<float>(device->compute(), model.centres().gradient)};
}

/// One rank in exact mode: four logical shards of two passes each.
class Passes final : public Axis {
 public:
  const AxisPosition& position() const override { return position_; }
  std::int64_t samples(int rank) const override { return samples_in(pass_, rank); }
  std::int64_t most() const override { return kSamples; }
  int pass() const override { return pass_; }
  bool is_last() const override { return pass_ == 5; }
  std::int64_t samples_in(int pass, int) const override { return kOfPasses.at(at(pass)); }
  void gather(Stream& compute, ConstView mine, View all, const char*) override {
    copy(compute, mine, all.reshaped(mine.shape()));
  }
  void exchange(Stream& compute, ConstView out, View in, const char*) override {
    copy(compute, out, in);
  }
  void sum(Stream&, View, const char*) override {}
  void sum_own(Stream&, View, const char*) override {}
  void begin(int pass) { pass_ = pass; }

 private:
  static std::size_t at(int pass) { return static_cast<std::size_t>(pass); }
  // Shards without their first, their second and both passes; the last two are made by nobody.
  static constexpr std::array<std::int64_t, 8> kOfPasses = {7, 3, 0, 5, 4, 2, 0, 0};
  AxisPosition position_{.rank = 0, .ranks = 1, .shards = 4, .accumulate = 2};
  int pass_ = 0;
};

/// The gradient of the centres, of a step in exact mode: added by the operation, or that of each
/// shard by itself, and these afterwards.
std::vector<float> exact_gradient_of(std::int64_t kept, bool adds_shards,
                                     const std::vector<float>& x, const std::vector<float>& w) {
  const auto device = open_device({});
  Stream& stream = device->compute();
  Passes axis;
  ClassCentres model(std::make_unique<Flatten>(), kClasses, kSize);
  model.centres().adds_shards = adds_shards;
  Registry registry = register_model(model);
  registry.place(axis.position());
  const auto loss = [&](Tape& tape, const Batch& batch) {
    return margin_softmax(model.forward(tape, batch[kImages]), model.centres(), batch[kTargets],
                          kSpec, {}, kept);
  };
  const Plan plan = plan_training(registry,
                                  {.tensors = {{kImages, {kSamples, kSize, 1, 1}},
                                               {kTargets, {kSamples}, Layout::nchw, DType::i32}}},
                                  loss);
  EXPECT_EQ(plan.rows_apart == 0, adds_shards);
  EXPECT_EQ(plan.step_bytes > 0, adds_shards);
  Parameters parameters(*device, registry, plan);
  Arena arena(*device, 64 << 20), step(*device, plan.step_bytes);
  Tape tape(*device, arena, registry.parameters);
  tape.keep_steps_in(step);
  copy_from_host(stream, w.data(), model.centres().value);
  const Tensor images(*device, {kSamples, kSize, 1, 1}), targets(*device, {kSamples}, DType::i32),
      seed(*device, {1});
  fill(stream, 1, seed);
  for (int pass = 0; pass < axis.position().passes(); ++pass) {
    const bool adds = pass % 2 > 0;
    const std::int64_t samples = axis.samples_in(pass, 0);
    parameters.use_pass(pass / 2);
    if (samples == 0) {
      tape.backward_of_nothing({.accumulate = adds});
      continue;
    }
    axis.begin(pass);
    tape.begin({.axis = &axis});
    copy_from_host(stream, x.data() + pass * kSamples * kSize, images);
    copy_from_host(stream, labels().data(), targets);
    Batch batch;
    batch.add(kImages, tape.input(View(images.f32(), {samples, kSize, 1, 1})));
    batch.add(kTargets, tape.constant(targets.view().slice(0, samples)));
    tape.backward(loss(tape, batch), seed, {.accumulate = adds});
  }
  for (int distance = 1; distance < 4 && !adds_shards; distance *= 2) {
    for (int shard = 0; shard < 4; shard += 2 * distance) {
      accumulate(stream, parameters.row_gradients(shard + distance),
                 parameters.row_gradients(shard));
    }
  }
  return test::read<float>(stream, model.centres().gradient);
}

TEST(MarginSoftmax, AddsLogicalShardsBlockByBlockBitForBit) {
  const auto x = test::random_floats(8 * kSamples * kSize, 1),
             w = test::random_floats(kClasses * kSize, 2);
  const std::vector<float> apart = exact_gradient_of(kKeptProducts, false, x, w);
  EXPECT_GT(std::ranges::count_if(apart, [](float g) { return g != 0; }), kClasses);
  constexpr std::int64_t kOfPass = 4 * kSamples * kClasses;
  for (const std::int64_t kept : {kKeptProducts, kOfPass, std::int64_t{0}}) {
    EXPECT_EQ(exact_gradient_of(kept, true, x, w), apart) << kept;
  }
}

test::reference::Rows rows_of_numbers(const std::vector<float>& numbers) {
  test::reference::Rows rows;
  for (auto row = numbers.begin(); row != numbers.end(); row += kSize) {
    rows.emplace_back(row, row + kSize);
  }
  return rows;
}

std::vector<double> flat(const test::reference::Rows& rows) {
  std::vector<double> numbers;
  for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

TEST(MarginSoftmax, ProductsMadeAgainHaveTheBitsOfThoseThatWereKept) {
  const auto x = test::random_floats(kSamples * kSize, 1),
             w = test::random_floats(kClasses * kSize, 2);
  const Found kept = gradients_of(kKeptProducts, x, w), again = gradients_of(0, x, w);
  EXPECT_EQ(again.dx, kept.dx);
  EXPECT_EQ(again.dw, kept.dw);
  const auto wanted =
      test::reference::margin_softmax(kSpec, rows_of_numbers(x), rows_of_numbers(w), labels(), 1);
  EXPECT_LT(test::relative_l2(kept.dx, flat(wanted.dx)), 2e-5);
  EXPECT_LT(test::relative_l2(kept.dw, flat(wanted.dw)), 2e-5);
}

}  // namespace
}  // namespace ringlet::nn
