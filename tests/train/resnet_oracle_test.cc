// Residual networks against PyTorch in float64 (tests/oracle/make_resnet_reference.py): losses, all
// gradients, parameters and running statistics after ten steps, and what the model gives then. With
// the world's statistics several replicas are one device.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/train/resnet_start.h"
#include "tests/train/runs.h"
#include "train/loop/replica.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSteps = 10, kBatch = 16;
/// PyTorch's own float32 run may be so far from float64, times a few for another order of sums.
constexpr double kOrders = 8, kLeast = 1e-5;

struct Case {
  std::string model;
  int replicas;
  LayoutChoice layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  std::string model = c.model;
  std::replace(model.begin(), model.end(), '-', '_');
  *out << model << "_" << c.replicas << (c.layout == LayoutChoice::nchw ? "_nchw" : "_lanes");
}

class ResNetOracle : public ::testing::TestWithParam<Case> {
 protected:
  TrainOptions options() const {
    TrainOptions options = plain_options(GetParam().replicas);
    options.recipe.model = GetParam().model;
    options.recipe.batch_size = kBatch;
    options.recipe.lr = expected_.at("lr");
    options.recipe.nesterov = true;
    options.recipe.weight_decay = 5e-4;
    options.recipe.batch_norm = BatchStatistics::world;
    options.execution.layout = GetParam().layout;
    options.max_steps = kSteps;
    return options;
  }
  /// Of "loss", "gradient_1" or "final".
  double tolerance(const char* part) const {
    return std::max(kLeast, kOrders * expected_.at("float32_deviation").at(part).get<double>());
  }
  /// On every rank; rank 0's gradients of the first step are compared.
  void check_gradients(TrainLoop& loop, Device& device, int rank) const {
    loop.step();
    if (rank != 0) return;
    for (const nn::Parameter* p : loop.replica().parameters().registry().parameters) {
      expect_summary(to_host(device, p->gradient), expected_.at("gradient_1"), p->name,
                     tolerance("gradient_1"));
    }
  }

  nlohmann::json expected_ = [] {
    return parse_json(testing::read_file(testing::testdata("oracle/resnet.json")))
        .at(GetParam().model);
  }();
};

TEST_P(ResNetOracle, TenStepsArePyTorchs) {
  const data::Splits data{small_images(kSteps * kBatch), small_images(kBatch)};
  const RunSetup setup = make_run_setup(options(), data, GetParam().replicas);
  const Outcome outcome = run(setup, {}, [&](TrainLoop& loop, Device& device, int rank) {
    start_by_formula(loop, device);
    check_gradients(loop, device, rank);
  });
  const auto losses = outcome.losses();
  ASSERT_EQ(losses.size(), std::size_t{kSteps});
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected_.at("losses")[i].get<double>(), tolerance("loss"))
        << "step " << i + 1;
  }
  const auto model = make_model(setup.replica);
  const nn::Registry registry = nn::register_model(*model);
  for (std::size_t i = 0; i < outcome.state.values.size(); ++i) {
    expect_summary(outcome.state.values[i], expected_.at("final"), registry.parameters[i]->name,
                   tolerance("final"));
  }
  for (std::size_t i = 0; i < outcome.state.buffers.size(); ++i) {
    expect_summary(outcome.state.buffers[i], expected_.at("final"), registry.buffers[i]->name,
                   tolerance("final"));
  }
  EXPECT_EQ(outcome.state.counters,
            std::vector<std::int64_t>(outcome.state.counters.size(), kSteps));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int replicas : {1, 2, 3}) {
    for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
      all.push_back({"resnet20", replicas, layout});
    }
  }
  all.push_back({"resnet18-cifar", 1, LayoutChoice::lanes});
  all.push_back({"resnet18-cifar", 3, LayoutChoice::nchw});
  all.push_back({"iresnet18", 1, LayoutChoice::lanes});
  all.push_back({"iresnet18", 1, LayoutChoice::nchw});
  all.push_back({"iresnet18", 3, LayoutChoice::lanes});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, ResNetOracle, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ringlet::train
