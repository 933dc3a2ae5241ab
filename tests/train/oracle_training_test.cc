// Optimisers, schedules, clipping and label smoothing against PyTorch's float64
// (tests/oracle/make_training.py), however the work is shared. And what they promise among
// themselves: the same bits in exact mode and after a resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "kernels/host_copy.h"
#include "tests/oracle/formula_data.h"
#include "tests/support/files.h"
#include "tests/support/gpu.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"
#include "train/files/recipe_json.h"
#include "train/optimizers/optimizer.h"
#include "train/recipe/models.h"
#include "train/reports/failure.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSteps = 20, kBatch = 64;
/// PyTorch's own float32 is at most 3e-6 off in loss, 1.4e-4 in what it moved: see "float32" in the
/// file. A projection is as large as what it projects, but for chance.
struct Tolerance {
  double loss = 1e-5, norm = 1e-4, moved = 5e-4;  ///< relative
};
constexpr double kRateTolerance = 1e-9;

const nlohmann::json& oracle_runs() {
  static const auto runs =
      parse_json(testing::read_file(testing::testdata("oracle/training.json"))).at("runs");
  return runs;
}

/// A parameter's first values, by make_training.py's formula.
std::vector<float> formula_start(std::size_t index, std::int64_t count, std::int64_t fan_in) {
  std::vector<float> values;
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(count); ++k) {
    const std::uint32_t hash =
        oracle::mix(k + 65536U * 64U * static_cast<std::uint32_t>(index) + 12345U);
    values.push_back(static_cast<float>((static_cast<double>(hash) / 0x1p31 - 1) /
                                        std::sqrt(static_cast<double>(fan_in))));
  }
  return values;
}

std::vector<std::vector<float>> formula_start(const nn::Registry& registry) {
  std::vector<std::vector<float>> start;
  std::int64_t fan_in = 1;
  for (std::size_t i = 0; i < registry.parameters.size(); ++i) {
    const Shape& shape = registry.parameters[i]->shape;
    if (shape.rank() > 1) fan_in = shape.count_per_sample();
    start.push_back(formula_start(i, shape.count(), fan_in));
  }
  return start;
}

/// Sum of +-values, by the signs of make_training.py.
double projection(const std::vector<double>& values, unsigned r) {
  double sum = 0;
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(values.size()); ++k) {
    const bool plus = ((oracle::mix(k + 99U) >> (7U + r)) & 1U) != 0;
    sum += plus ? values[k] : -values[k];
  }
  return sum;
}

/// Of such a run a rank has but its part (margin_test.cc).
bool has_margin(const nlohmann::json& reference) { return reference.at("recipe").contains("loss"); }

TrainOptions options_of(const nlohmann::json& reference, TrainOptions options) {
  nlohmann::json recipe = all_fields(options.recipe);
  recipe.update(nlohmann::json{{"momentum", 0}, {"nesterov", false}, {"weight_decay", 0}});
  recipe.update({{"shuffle", false}, {"model", reference.at("model")}, {"batch_size", kBatch}});
  recipe.update(reference.at("recipe"));
  options.recipe = recipe_from_json(recipe, "the oracle");
  options.execution.bucket_kb = 64;
  return options;
}

class Norms : public RunListener {
 public:
  bool wants_grad_norm() const override { return true; }
};

Outcome run_from_formula(const TrainOptions& options, int classes = oracle::kFormulaClasses) {
  const int ranks = static_cast<int>(options.execution.devices.size());
  Norms norms;
  return run(make_run_setup(options, formula_splits(kSteps * kBatch, 40, classes), ranks), {&norms},
             [](TrainLoop& loop, Device& device, int) {
               const nn::Registry& registry = loop.replica().parameters().registry();
               const auto start = formula_start(registry);
               for (std::size_t i = 0; i < start.size(); ++i) {
                 const nn::Parameter& parameter = *registry.parameters[i];
                 copy_from_host(device.compute(), start[i].data() + parameter.first_held(),
                                parameter.value);
               }
             });
}

void expect_pytorchs(const Outcome& outcome, const nlohmann::json& reference,
                     const Recipe& recipe) {
  constexpr Tolerance tolerance;
  ASSERT_EQ(outcome.steps.size(), static_cast<std::size_t>(kSteps));
  for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i + 1));
    const StepReport& step = outcome.steps[i];
    const double rate = reference.at("rates")[i];
    const double loss = reference.at("losses")[i];
    EXPECT_NEAR(step.loss, loss, tolerance.loss * std::max(1.0, loss));
    EXPECT_NEAR(step.lr, rate, kRateTolerance * rate + 1e-15);
    if (reference.at("norms").empty()) continue;
    const double norm = reference.at("norms")[i];
    EXPECT_NEAR(step.grad_norm, norm, tolerance.norm * norm);
  }
  ReplicaSpec spec;
  spec.recipe = recipe;
  spec.input = {1, 28, 28, reference.at("classes")};
  const auto model = make_model(spec);
  const nn::Registry registry = nn::register_model(*model);
  const auto start = formula_start(registry);
  ASSERT_EQ(outcome.state.values.size(), start.size());
  const auto values_of = [&](std::size_t i) {  // the rows of all ranks, where these are cut
    std::vector<float> values = outcome.state.values[i];
    for (std::size_t rank = 1; values.size() < start[i].size(); ++rank) {
      const std::vector<float>& more = outcome.of_ranks.at(rank).values[i];
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  };
  for (std::size_t i = 0; i < start.size(); ++i) {
    const std::string& name = registry.parameters[i]->name;
    SCOPED_TRACE(name);
    std::vector<double> change;
    double squares = 0;
    const std::vector<float> values = values_of(i);
    for (std::size_t k = 0; k < start[i].size(); ++k) {
      change.push_back(static_cast<double>(values[k]) - static_cast<double>(start[i][k]));
      squares += change.back() * change.back();
    }
    const double moved = reference.at("moved").at(name);
    EXPECT_NEAR(std::sqrt(squares), moved, tolerance.moved * moved);
    for (unsigned r = 0; r < 4; ++r) {
      EXPECT_NEAR(projection(change, r), reference.at("projections").at(name)[r].get<double>(),
                  tolerance.moved * moved);
    }
  }
}

struct Way {
  const char* name;
  int replicas;
  int accumulate = 1;
  bool exact = false;
  LayoutChoice layout = LayoutChoice::automatic;
  DeviceKind device = DeviceKind::cpu;
  bool graph = false;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

TrainOptions options_of(const nlohmann::json& reference, const Way& way) {
  TrainOptions options = plain_options(way.replicas, way.exact ? "doubling" : "ring");
  options.recipe.exact = way.exact;
  options.recipe.accumulate = way.accumulate;
  options.execution.layout = way.layout;
  options.execution.graph = way.graph;
  for (DeviceId& device : options.execution.devices) device.kind = way.device;
  return options_of(reference, options);
}

class TrainingOracle : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceKind::cuda) SKIP_WITHOUT_GPU();
  }
};

TEST_P(TrainingOracle, LossesRatesNormsAndParametersArePyTorchs) {
  for (const nlohmann::json& reference : oracle_runs()) {
    SCOPED_TRACE(reference.at("model").get<std::string>() + " " + reference.at("recipe").dump());
    const TrainOptions options = options_of(reference, GetParam());
    expect_pytorchs(run_from_formula(options, reference.at("classes")), reference, options.recipe);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TrainingOracle,
                         ::testing::Values(Way{"one", 1},
                                           Way{"one_nchw", 1, 1, false, LayoutChoice::nchw},
                                           Way{"two_accumulate", 2, 2}, Way{"four", 4},
                                           Way{"exact", 1, 1, true}),
                         ::testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    Cuda, TrainingOracle,
    ::testing::Values(Way{"cuda", 1, 1, false, LayoutChoice::automatic, DeviceKind::cuda},
                      Way{"cuda_graph", 1, 1, false, LayoutChoice::automatic, DeviceKind::cuda,
                          true},
                      Way{"cuda_two", 2, 2, false, LayoutChoice::automatic, DeviceKind::cuda}),
    ::testing::PrintToStringParamName());

TEST(TrainingOracleBits, ReplicasChangeNoneInExactMode) {
  for (const nlohmann::json& reference : oracle_runs()) {
    if (reference.at("model") != "mlp" || has_margin(reference)) continue;
    const Way one{"exact", 1, 2, true}, two{"exact", 2, 2, true}, four{"exact", 4, 2, true};
    const std::string expected = bytes_of(run_from_formula(options_of(reference, one)).state);
    EXPECT_TRUE(bytes_of(run_from_formula(options_of(reference, two)).state) == expected);
    EXPECT_TRUE(bytes_of(run_from_formula(options_of(reference, four)).state) == expected);
  }
}

TEST(TrainingOracleBits, AResumeInTheMiddleChangesNone) {
  for (const nlohmann::json& reference : oracle_runs()) {
    if (reference.at("model") != "mlp" || has_margin(reference)) continue;
    SCOPED_TRACE(reference.at("recipe").dump());
    const data::Splits data = formula_splits(kSteps * kBatch);
    TrainOptions options = options_of(reference, Way{"exact", 2, 1, true});
    const std::string whole = bytes_of(run(options, data).state);
    for (const std::int64_t stop : {1, 3, 11}) {  // within the warm-up, and behind it
      const testing::TemporaryDirectory folder;
      options.files.out = folder.path();
      options.max_steps = stop;
      run(options, data);
      TrainOptions rest = options_of(reference, Way{"exact", 4, 1, true});
      rest.files.out = folder.path();
      const SavedState saved = read_state(folder.path());
      EXPECT_EQ(saved.recipe, rest.recipe);
      EXPECT_TRUE(bytes_of(run(make_run_setup(rest, data, 4, saved)).state) == whole) << stop;
    }
  }
}

TEST(Clipping, AnyNormThatIsNeverReachedChangesNoBit) {
  const data::Splits data = formula_splits(5 * kBatch);
  for (const nlohmann::json& reference : oracle_runs()) {
    if (reference.at("model") != "mlp") continue;
    TrainOptions options = options_of(reference, Way{"two", 2});
    options.recipe.clip_norm = 0;
    const std::string expected = bytes_of(run(options, data).state);
    options.recipe.clip_norm = 1e6;
    EXPECT_TRUE(bytes_of(run(options, data).state) == expected);
    options.recipe.clip_norm = 1e-3;
    EXPECT_FALSE(bytes_of(run(options, data).state) == expected);
  }
}

TEST(Clipping, ABrokenGradientIsOneErrorThatNamesTheParameter) {
  TrainOptions options = plain_options(2);
  options.recipe.model = "mlp";
  options.recipe.clip_norm = 1;
  const RunSetup setup = make_run_setup(options, formula_splits(5 * kBatch), 2);
  // Weights so large that the loss is finite still (1e16), and the gradient of fc2.weight is not.
  const auto spoil = [](TrainLoop& loop, Device& device, int) {
    for (const nn::Parameter* parameter : loop.replica().parameters().registry().parameters) {
      const std::string& name = parameter->name;
      std::vector<float> values(static_cast<std::size_t>(parameter->shape.count()),
                                name == "fc1.bias"     ? 1e3F
                                : name == "fc2.weight" ? 1e-30F
                                                       : 0);
      if (name == "fc3.weight") std::fill(values.begin(), values.begin() + 128, 3e38F);
      copy_from_host(device.compute(), values.data(), parameter->value);
    }
  };
  const auto message = testing::message_of<RunError>([&] { run(setup, {}, spoil); });
  EXPECT_TRUE(testing::says(message, {"norm is", "step 1", "epoch 1", "the gradient of fc2.weight",
                                      "left as they were", "--lr"}));
}

TEST(Clipping, IsRefusedForAnOptimiserThatDoesNotScale) {
  class Still final : public Optimizer {
   public:
    Still(Device& device, const nn::Parameters& parameters) : Optimizer(device, parameters, {}) {}
    void step(ConstView) override {}
  };
  TrainOptions options = plain_options(1);
  options.recipe.clip_norm = 1;
  options.make_optimizer = [](Device& device, const nn::Parameters& parameters, const Recipe&) {
    return std::make_unique<Still>(device, parameters);
  };
  EXPECT_TRUE(testing::says(
      testing::message_of<std::exception>([&] { run(options, formula_splits(kBatch)); }),
      {"--clip-norm", "does not clip"}));
}

TEST(LabelSmoothing, IsInTheTrainingLossAndNotInTheTestLoss) {
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  options.recipe.lr = 0;
  const data::Splits data = formula_splits(kBatch);
  const Outcome plain = run(options, data);
  options.recipe.label_smoothing = 0.3;
  const Outcome smoothed = run(options, data);
  EXPECT_NE(smoothed.steps[0].loss, plain.steps[0].loss);
  EXPECT_EQ(smoothed.epochs[0].test.loss, plain.epochs[0].test.loss);
}

}  // namespace
}  // namespace ringlet::train
