// The squares of a gradient's norm: a double for each parameter, in the model's order, whichever
// stage has it.
#include "train/sync/gradient_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/loop/stage_link.h"

namespace ringlet::train {
namespace {

/// A gradient for each parameter, by its name alone; of very different sizes.
void fill_gradients(Device& device, const nn::Parameters& parameters) {
  for (const nn::PlannedParameter& planned : parameters.plan().parameters) {
    const auto seed = static_cast<std::uint32_t>(std::hash<std::string>{}(planned.name));
    const float size = std::ldexp(1.0F, static_cast<int>(seed % 40) - 20);
    const auto values = test::random_floats(planned.shape.count(), seed, -size, size);
    copy_from_host(device.compute(), values.data(),
                   parameters.gradients().slice(planned.begin, planned.end));
  }
}

std::vector<double> doubles_of(Device& device, ConstView sums) {
  std::vector<double> doubles(static_cast<std::size_t>(sums.count() / kDoubleBytes));
  copy_to_host(device.compute(), sums, doubles.data());
  return doubles;
}

struct Measured {
  std::vector<double> sums;  // of all stages, one behind the other
  std::vector<float> norms;  // of the ranks
};

Measured measured(TrainOptions options, const std::string& stages) {
  const int count = stages_in(stages);
  options.execution.stages = stages;
  options.execution.measures_stages = false;
  options.execution.devices.resize(static_cast<std::size_t>(count));
  const RunSetup setup = make_run_setup(options, formula_splits(64), count);
  std::vector<std::vector<double>> of_stages(static_cast<std::size_t>(count));
  Measured all;
  std::mutex mutex;
  run_ranks(setup.options.execution, [&](Device& device, const Ranks& ranks) {
    const Pipeline pipeline =
        pipeline_for(ranks.stage(), PipelineSchedule::one_f_one_b, count, 1, false);
    Replica replica(device, setup.stages ? spec_of_stage(setup.replica, *setup.stages, pipeline,
                                                         ranks.stage(), false)
                                         : setup.replica);
    fill_gradients(device, replica.parameters());
    GradientSquares squares(device, ranks.replicas, ranks.stages, replica.parameters());
    const Tensor norm(device, {1});
    squares.measure(norm, {});
    const std::lock_guard lock(mutex);
    of_stages[static_cast<std::size_t>(ranks.stage())] = doubles_of(device, squares.of_stage());
    all.norms.push_back(read_scalar(device.compute(), norm));
  });
  for (const auto& sums : of_stages) all.sums.insert(all.sums.end(), sums.begin(), sums.end());
  return all;
}

/// The same of each parameter by itself, in the order of registration.
std::vector<double> reference(const TrainOptions& options) {
  const RunSetup setup = make_run_setup(options, formula_splits(64), 1);
  const auto device = open_device({}, {.overlap = false});
  Replica replica(*device, setup.replica);
  const nn::Parameters& parameters = replica.parameters();
  fill_gradients(*device, parameters);
  const Tensor square(*device, {2});
  std::vector<double> sums;
  for (const nn::Parameter* parameter : parameters.registry().parameters) {
    const View sum(square.view().address(), {kDoubleBytes}, DType::u8);
    square_sum(device->compute(), parameter->gradient.reshaped({parameter->shape.count()}), sum);
    sums.push_back(doubles_of(*device, sum).front());
  }
  return sums;
}

TEST(GradientSquares, AreOfEachParameterInTheModelsOrderWhicheverStageHasIt) {
  for (const TrainOptions& options : {plain_options(1), normed(plain_options(1))}) {
    const std::vector<double> expected = reference(options);
    ASSERT_GT(expected.size(), 4U);
    double all = 0;
    for (const double sum : expected) all += sum;
    const auto norm = static_cast<float>(std::sqrt(all));
    for (const char* stages : {"1", "2", "3"}) {
      SCOPED_TRACE(std::string(stages) + " stages");
      const Measured actual = measured(options, stages);
      EXPECT_EQ(actual.sums, expected);
      EXPECT_EQ(actual.norms,
                std::vector<float>(static_cast<std::size_t>(stages_in(stages)), norm));
    }
  }
}

}  // namespace
}  // namespace ringlet::train
