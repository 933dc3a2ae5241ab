// Training against PyTorch: the same weights, data and recipe give the same losses, gradients and
// parameters, however many replicas share the work (tests/oracle/make_reference.py).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/data_error.h"
#include "base/files/json_text.h"
#include "data/open_dataset.h"
#include "nn/row_major.h"
#include "tests/oracle/formula_data.h"
#include "tests/support/files.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"
#include "train/files/safetensors.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

const std::string kFolder = testing::testdata("oracle/");
constexpr std::int64_t kSteps = 20, kBatch = 64;
constexpr double kLossTolerance = 1e-5, kGradientTolerance = 1e-5, kFinalTolerance = 1e-4;

struct Case {
  int replicas;
  std::string sync;
  LayoutChoice layout;
  int accumulate;
  bool fuse;
  DeviceKind device = DeviceKind::cpu;
  bool graph = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << (c.device == DeviceKind::cuda ? c.graph ? "cuda_graph_" : "cuda_" : "") << c.replicas
       << (c.replicas == 1 ? "" : "_" + c.sync)
       << (c.layout == LayoutChoice::nchw   ? "_nchw"
           : c.layout == LayoutChoice::nhwc ? "_nhwc"
                                            : "_lanes")
       << "_accumulate" << c.accumulate << (c.fuse ? "" : "_unfused");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int replicas : {1, 2, 3, 4}) {
    for (const std::string sync : {"naive", "ring", "doubling"}) {
      if (replicas == 1 && sync != "ring") continue;
      for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
        for (const int accumulate : {1, 2}) {
          all.push_back({replicas, sync, layout, accumulate, true});
          if (layout == LayoutChoice::lanes && sync == "ring") {
            all.push_back({replicas, sync, layout, accumulate, false});
          }
        }
      }
    }
  }
  return all;
}

/// Every replica on cuda:0.
std::vector<Case> cuda_cases() {
  std::vector<Case> all;
  for (const int accumulate : {1, 2}) {
    for (const bool graph : {false, true}) {
      all.push_back({1, "ring", LayoutChoice::nchw, accumulate, true, DeviceKind::cuda, graph});
    }
    all.push_back({1, "ring", LayoutChoice::nhwc, accumulate, true, DeviceKind::cuda, true});
    for (const int replicas : {2, 4}) {
      for (const std::string sync : {"naive", "ring", "doubling"}) {
        all.push_back({replicas, sync, LayoutChoice::nchw, accumulate, true, DeviceKind::cuda});
      }
    }
  }
  return all;
}

nlohmann::json reference(const std::string& data) {
  return parse_json(testing::read_file(kFolder + "reference.json")).at(data);
}

TrainOptions oracle_options(const Case& c, double lr) {
  TrainOptions options = plain_options(c.replicas, c.sync);
  options.recipe.lr = lr;
  options.recipe.batch_size = kBatch;
  options.recipe.accumulate = c.accumulate;
  options.execution.layout = c.layout;
  options.execution.fuse = c.fuse;
  for (DeviceId& device : options.execution.devices) device.kind = c.device;
  options.execution.graph = c.graph;
  options.execution.bucket_kb = 16;  // several buckets
  options.files.init = kFolder + "init.safetensors";
  options.max_steps = kSteps;
  return options;
}

void expect_losses(const std::vector<StepReport>& steps, const nlohmann::json& expected) {
  ASSERT_EQ(steps.size(), expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(steps[i].loss, expected[i].get<double>(), kLossTolerance) << "step " << i + 1;
  }
}

/// One step on every rank; rank 0's gradients by registration order.
std::vector<std::vector<float>> first_gradients(const RunSetup& setup) {
  std::vector<std::vector<float>> gradients;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        TrainLoop loop(setup, device, communicator, {});
        loop.step();
        if (communicator.rank() != 0) return;
        for (const nn::Parameter* parameter : loop.replica().parameters().registry().parameters) {
          gradients.push_back(nn::to_rows(device.compute(), parameter->gradient));
        }
      },
      nullptr);
  return gradients;
}

void expect_near(const std::vector<std::vector<float>>& actual, const std::string& file,
                 double tolerance) {
  const SafetensorsFile expected(kFolder + file);
  const auto model = make_model("lenet", {});
  const nn::Registry registry = nn::register_model(*model);
  ASSERT_EQ(actual.size(), registry.parameters.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string& name = registry.parameters[i]->name;
    const auto values = expected.f32(name);
    EXPECT_LT(test::relative_l2(actual[i], std::vector<float>(values.begin(), values.end())),
              tolerance)
        << name;
  }
}

class Oracle : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceKind::cuda) SKIP_WITHOUT_GPU();
  }
};

TEST_P(Oracle, LossesGradientsAndParametersArePyTorchs) {
  const nlohmann::json expected = reference("formula");
  const TrainOptions options = oracle_options(GetParam(), expected.at("lr"));
  const RunSetup setup =
      make_run_setup(options, formula_splits(kSteps * kBatch), GetParam().replicas);
  const Outcome outcome = run(setup);
  expect_losses(outcome.steps, expected.at("losses"));
  expect_near(first_gradients(setup), "gradient_1.safetensors", kGradientTolerance);
  expect_near(outcome.state.values, "final.safetensors", kFinalTolerance);
  for (const HostState& rank : outcome.of_ranks) EXPECT_EQ(bytes_of(rank), bytes_of(outcome.state));
}

INSTANTIATE_TEST_SUITE_P(Replicas, Oracle, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Cuda, Oracle, ::testing::ValuesIn(cuda_cases()),
                         ::testing::PrintToStringParamName());

TEST(OracleData, IsTheFormula) {
  const nlohmann::json check = reference("formula_check");
  const auto data = formula_dataset(kSteps * kBatch);
  std::int64_t sum = 0;
  for (const std::uint8_t pixel : data->images()) sum += pixel;
  EXPECT_EQ(sum, check.at("pixel_sum"));
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(data->images()[i], check.at("first_pixels")[i]);
    EXPECT_EQ(data->targets()[i], check.at("labels")[i]);
  }
}

TEST(OracleFashionMnist, LossesArePyTorchs) {
  data::Splits data;
  try {
    data = data::open_dataset("fashion-mnist");
  } catch (const DataError& error) {
    GTEST_SKIP() << "Fashion-MNIST is not installed: " << error.what();
  }
  const nlohmann::json expected = reference("fashion_mnist");
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    TrainOptions options = oracle_options({2, "ring", layout, 1, true}, expected.at("lr"));
    RunSetup setup = make_run_setup(options, data, 2);
    setup.data.test = formula_dataset(10);  // a short evaluation
    setup.replica.max_eval_batch = 10;
    expect_losses(run(setup).steps, expected.at("losses"));
  }
}

}  // namespace
}  // namespace ringlet::train
