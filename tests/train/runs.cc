#include "tests/train/runs.h"

#include <algorithm>
#include <cmath>

#include "data/memory_dataset.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/residual_block.h"
#include "nn/layers/stateless.h"
#include "tests/oracle/formula_data.h"
#include "tests/support/tensors.h"

namespace ringlet::train {

std::shared_ptr<const data::Dataset> formula_dataset(std::int64_t count, std::uint32_t first,
                                                     int classes) {
  constexpr auto kSide = static_cast<std::uint32_t>(oracle::kFormulaSide);
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (std::uint32_t i = first; i < first + static_cast<std::uint32_t>(count); ++i) {
    labels.push_back(oracle::formula_label(i));
    for (std::uint32_t y = 0; y < kSide; ++y) {
      for (std::uint32_t x = 0; x < kSide; ++x) images.push_back(oracle::formula_pixel(i, y, x));
    }
  }
  data::DatasetInfo info{
      .name = "formula", .channels = 1, .height = kSide, .width = kSide, .target_names = {}};
  for (int k = 0; k < classes; ++k) info.target_names.push_back(std::to_string(k));
  return std::make_shared<const data::MemoryDataset>(info, std::move(images), std::move(labels));
}

data::Splits formula_splits(std::int64_t train, std::int64_t test, int classes) {
  return {formula_dataset(train, 0, classes), formula_dataset(test, 1'000'000, classes)};
}

TrainOptions plain_options(int replicas, const std::string& sync) {
  TrainOptions options;
  options.recipe.data = "formula";
  options.recipe.batch_size = 64;
  options.recipe.epochs = 1;
  options.recipe.lr = 0.05;
  options.recipe.momentum = 0.9;
  options.recipe.shuffle = false;
  options.recipe.normalize = false;
  options.execution.devices.assign(static_cast<std::size_t>(replicas), DeviceId{});
  options.execution.sync = sync;
  options.files.force = true;  // tests train into a folder again and again
  return options;
}

TrainOptions exact_options(int replicas) {
  TrainOptions options = plain_options(replicas, "doubling");
  options.recipe.exact = true;
  options.recipe.shuffle = true;
  options.recipe.nesterov = true;
  options.recipe.weight_decay = 1e-3;
  options.recipe.schedule = ScheduleKind::one_cycle;
  return options;
}

namespace {

nn::Conv2dOptions conv(int in, int out, int stride = 1) {
  return {.in_channels = in,
          .out_channels = out,
          .spec = {.stride = {stride, stride}, .padding = {1, 1}},
          .bias = false};
}

/// A residual network of four channels for images of any size.
std::unique_ptr<nn::Layer> make_normed(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv1", conv(input.channels, 4, 2));
  net->add<nn::BatchNorm2d>("bn1", 4);
  net->add<nn::ReLU>("relu");
  auto& block = net->add<nn::ResidualBlock>("block", "bn2", 4);
  block.body().add<nn::Conv2d>("conv1", conv(4, 4));
  block.body().add<nn::BatchNorm2d>("bn1", 4);
  block.body().add<nn::ReLU>("relu");
  block.body().add<nn::Conv2d>("conv2", conv(4, 4));
  net->add<nn::AdaptiveAvgPool2d>("avgpool");
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", 4, input.outputs);
  return net;
}

}  // namespace

TrainOptions normed(TrainOptions options) {
  options.recipe.model = "normed";
  options.make_model = make_normed;
  return options;
}

namespace {

/// Keeps what rank 0 tells.
class Recorder : public RunListener {
 public:
  explicit Recorder(Outcome& outcome) : outcome_(outcome) {}
  void started(const StartReport& report) override {
    for (const Bucket& bucket : report.buckets) outcome_.buckets.push_back(bucket.name);
  }
  void step_done(const StepReport& report) override { outcome_.steps.push_back(report); }
  void epoch_done(const EpochReport& report) override { outcome_.epochs.push_back(report); }

 private:
  Outcome& outcome_;
};

}  // namespace

Outcome run(const RunSetup& setup, const std::vector<RunListener*>& listeners,
            const BeforeSteps& before) {
  Outcome outcome;
  Recorder recorder(outcome);
  std::vector<RunListener*> told = listeners;
  told.push_back(&recorder);
  comm::LocalGroup group = threads_of(setup.options.execution);
  outcome.of_ranks.resize(static_cast<std::size_t>(group.size()));
  outcome.held.resize(static_cast<std::size_t>(group.size()));
  run_ranks(group, setup.options.execution, [&](Device& device, const Ranks& ranks) {
    const int rank = ranks.world.rank();
    TrainLoop loop(
        setup, device, ranks,
        rank == 0 ? std::span<RunListener* const>(told) : std::span<RunListener* const>());
    if (before) before(loop, device, rank);
    const RunResult result = loop.run();
    outcome.held[static_cast<std::size_t>(rank)] = device.bytes_held();
    outcome.of_ranks[static_cast<std::size_t>(rank)] =
        download(device, loop.replica().parameters(), loop.optimizer().state());
    HostState whole = setup.stages ? loop.collect() : HostState{};
    if (rank != 0) return;
    outcome.state = setup.stages ? std::move(whole) : outcome.of_ranks[0];
    outcome.state.loss_scale.reset();
    outcome.result = result;
  });
  return outcome;
}

Outcome run(const TrainOptions& options, const data::Splits& data,
            const std::vector<RunListener*>& listeners) {
  const int ranks = static_cast<int>(options.execution.devices.size());
  return run(make_run_setup(options, data, ranks), listeners);
}

std::vector<double> Outcome::losses() const {
  std::vector<double> losses;
  for (const StepReport& step : steps) losses.push_back(step.loss);
  return losses;
}

std::string bytes_of(const HostState& state) {
  std::string bytes;
  const auto append = [&bytes](const std::vector<std::vector<float>>& group) {
    for (const std::vector<float>& tensor : group) {
      bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.size() * sizeof(float));
    }
  };
  append(state.values);
  append(state.buffers);
  for (const std::int64_t count : state.counters) bytes += std::to_string(count) + " ";
  for (const HostArena& arena : state.optimizer) append(arena.tensors);
  if (state.loss_scale) {
    const LossScaleState& scale = *state.loss_scale;
    for (const double number :
         {scale.scale, static_cast<double>(scale.good_steps),
          static_cast<double>(scale.skips_in_row), static_cast<double>(scale.skips)}) {
      bytes += std::to_string(number) + " ";
    }
  }
  return bytes;
}

double distance(const HostState& actual, const HostState& expected) {
  if (actual.values.size() != expected.values.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    largest = std::max(largest, test::relative_l2(actual.values[i], expected.values[i]));
  }
  return largest;
}

}  // namespace ringlet::train
