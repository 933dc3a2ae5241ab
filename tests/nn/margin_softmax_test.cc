// nn::margin_softmax() over several blocks of classes, with its products kept and made again.
#include "nn/ops/margin_softmax.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
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
