// Nothing allocates in the steady state: neither operator new nor the device.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/sgd.h"
#include "nn/models/lenet.h"
#include "nn/ops/elementwise.h"
#include "tests/nn/net.h"
#include "tests/nn/support.h"
#include "tests/support/counting_new.h"

namespace ringlet::nn {
namespace {

struct Case {
  Layout layout;
  int threads;
};

/// Forward, backward and update of one batch size.
class Training {
 public:
  Training(std::unique_ptr<Layer> model, const Shape& sample, std::int64_t batch, const Case& c)
      : rig_(std::move(model), {sample.with_batch(batch), c.layout},
             {.device = {.threads = c.threads}}),
        sample_(sample),
        layout_(c.layout),
        rates_(test::upload<float>(*rig_.device, {2}, {0.01F, 0.9F})),
        velocity_(*rig_.device, {rig_.plan.elements}) {
    fill(rig_.tape.stream(), 0, velocity_);
  }

  struct Batch {
    Tensor x, labels;
  };
  Batch batch(std::int64_t samples) {
    return {test::random_tensor(*rig_.device, sample_.with_batch(samples), 3, layout_),
            test::upload(*rig_.device, {samples}, test::random_labels(samples, 4, 3))};
  }
  void step(const Batch& batch) {
    rig_.step(batch.x, batch.labels, {}, &listener_);
    sgd_update(rig_.tape.stream(), {}, rates_, rig_.parameters.values(),
               rig_.parameters.gradients().slice(0, rig_.plan.elements), velocity_);
  }
  void evaluate(const Batch& batch) { rig_.forward(batch.x, batch.labels, {.training = false}); }
  std::int64_t device_allocations() const { return rig_.device->allocations(); }

 private:
  struct Silent : ReadyListener {
    void gradient_ready(const Parameter&) override {}
  };
  Rig rig_;
  Shape sample_;
  Layout layout_;
  Tensor rates_, velocity_;
  Silent listener_;
};

class AllocationTest : public ::testing::TestWithParam<Case> {
 protected:
  void expect_none_after_two_steps(std::unique_ptr<Layer> model, const Shape& sample) {
    Training training(std::move(model), sample, 48, GetParam());
    const Training::Batch full = training.batch(48), shorter = training.batch(37),
                          one = training.batch(1);
    for (int i = 0; i < 2; ++i) training.step(full);

    const std::int64_t device_before = training.device_allocations();
    const std::int64_t new_before = test::operator_new_calls();
    for (const auto* batch : {&full, &full, &shorter, &one, &full}) training.step(*batch);
    EXPECT_EQ(test::operator_new_calls() - new_before, 0);
    EXPECT_EQ(training.device_allocations() - device_before, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, AllocationTest,
                         ::testing::Values(Case{Layout::nchw, 1}, Case{Layout::nchw, 2},
                                           Case{Layout::lanes, 1}, Case{Layout::lanes, 2}),
                         [](const auto& test) {
                           return std::string(name_of(test.param.layout)) + "_" +
                                  std::to_string(test.param.threads) + "_threads";
                         });

TEST_P(AllocationTest, LeNetAllocatesNothingAfterTwoSteps) {
  expect_none_after_two_steps(make_lenet({}, LeNetStart::practitioner), {1, 1, 28, 28});
}

TEST_P(AllocationTest, DropoutAndMaxPoolingAllocateNothingAfterTwoSteps) {
  const Net net = test_nets().back();
  expect_none_after_two_steps(make_sequential(net), net.sample);
}

// More closures than one chunk of the tape's memory holds.
TEST(Allocation, ALongTapeKeepsItsMemory) {
  auto graph = std::make_unique<Graph>();
  Parameter& parameter = graph->add("parameter", {1}, 1);
  graph->set([&](Tape& tape, const Variable&) {
    Variable y = tape.parameter(parameter);
    for (int i = 0; i < 900; ++i) y = scale(y, 1);
    return y;
  });
  Rig rig(std::move(graph), {{1}, Layout::nchw}, {.loss = output_is_loss});
  const Tensor x = test::upload<float>(*rig.device, {1}, {1});
  const Tensor labels = test::upload<std::int32_t>(*rig.device, {1}, {0});
  for (int i = 0; i < 2; ++i) rig.step(x, labels);
  const std::int64_t before = test::operator_new_calls();
  for (int i = 0; i < 3; ++i) rig.step(x, labels);
  EXPECT_EQ(test::operator_new_calls() - before, 0);
}

TEST(CountingNew, Counts) {
  const std::int64_t before = test::operator_new_calls();
  {
    const std::vector<int> plain(10);
    const auto device = open_device({});
    const Tensor aligned(*device, {10});
  }
  EXPECT_GE(test::operator_new_calls() - before, 3);
}

}  // namespace
}  // namespace ringlet::nn
