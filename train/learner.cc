#include "train/learner.h"

#include <array>
#include <cmath>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/l2_norm.h"
#include "train/failure.h"

namespace ringlet::train {

namespace {

/// Places of the statistics behind the gradients: sums over the ranks, then what each rank
/// computes.
enum Statistic : std::int64_t { kLossSum = 0, kSamples = 1, kGradNorm = 3 };

ReplicaSpec spec_of(const MakeModel& make_model, const LearnerOptions& options) {
  ReplicaSpec spec;
  spec.recipe.model = "the caller's own";
  spec.recipe.seed = options.seed;
  spec.recipe.nesterov = options.nesterov;
  spec.recipe.weight_decay = options.weight_decay;
  spec.make_model = make_model;
  spec.input = options.input;
  spec.max_train_batch = spec.max_eval_batch = options.max_batch;
  return spec;
}

}  // namespace

Learner::Learner(Device& device, comm::Communicator& communicator, const MakeModel& make_model,
                 const LearnerOptions& options)
    : device_(device),
      communicator_(communicator),
      options_(options),
      replica_(device, spec_of(make_model, options), &communicator.allocator(device)),
      optimizer_(
          make_optimizer(device, replica_.parameters(), spec_of(make_model, options).recipe)),
      sync_(device, communicator, replica_.parameters(), ShardTree(1),
            {.bucket_kb = options.bucket_kb,
             .overlap = options.overlap,
             .grad_dtype = options.grad_dtype,
             .first_bucket_kb = options.first_bucket_kb}),
      inputs_(device),
      images_(device, {options.max_batch, options.input.channels, options.input.height,
                       options.input.width}),
      labels_(device, {options.max_batch}, DType::i32),
      loss_(device, {1}),
      counts_(device, {2 * options.input.classes}, DType::i32) {
  replica_.parameters().initialize(options.seed);
}

Learner::~Learner() {
  drain(device_.communication());
  drain(device_.compute());
}

data::Batch Learner::to_device(const data::Batch& batch) {
  require(batch.n >= 0 && batch.n <= options_.max_batch, "Learner",
          "the batch is larger than LearnerOptions::max_batch");
  const nn::ModelInput& input = options_.input;
  data::Batch there = batch;
  there.images = images_.f32();
  there.labels = labels_.view().as<std::int32_t>();
  if (batch.n == 0) return there;
  copy_from_host(device_.compute(), batch.images,
                 View(there.images, {batch.n, input.channels, input.height, input.width},
                      DType::f32, Layout::nchw));
  copy_from_host(device_.compute(), batch.labels, View(there.labels, {batch.n}, DType::i32));
  return there;
}

double Learner::step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates) {
  Stream& compute = device_.compute();
  const View statistics = replica_.parameters().statistics();
  try {
    inputs_.upload(rates, world_samples, batch.n, false);
    fill(compute, 0, statistics);
    replica_.forward(to_device(batch));
    replica_.add_loss_to(statistics.slice(kLossSum, kSamples));
    copy(compute, inputs_.counts(), statistics.slice(kSamples, kGradNorm));
    sync_.begin_step();
    replica_.backward(inputs_.loss_seed(), {}, &sync_);
    sync_.finish();
    if (sync_.narrows()) {
      const nn::Parameters& parameters = replica_.parameters();
      l2_norm(compute, parameters.gradients().slice(0, parameters.plan().elements),
              statistics.slice(kGradNorm, kGradNorm + 1));
    }
    std::array<float, nn::Parameters::kStatistics> sums{};
    copy_to_host(compute, statistics, sums.data());
    communicator_.require_alive();
    require(static_cast<std::int64_t>(sums[kSamples]) == world_samples, "Learner::step",
            "the ranks' samples do not add up to world_samples");
    require(!sync_.narrows() || std::isfinite(sums[kGradNorm]), "Learner::step",
            "the gradient is beyond the type as which it travels; leave grad_dtype at f32");
    optimizer_->step(inputs_.rates());
    return static_cast<double>(sums[kLossSum]) / static_cast<double>(world_samples);
  } catch (...) {  // collectives under way read this replica's memory: all must let go of it
    communicator_.abort(message_of_current_exception());
    drain(device_.communication());
    throw;
  }
}

std::int64_t Learner::count_right(const data::Batch& batch) {
  if (batch.n == 0) return 0;
  fill(device_.compute(), 0, counts_);
  replica_.evaluate(to_device(batch), loss_, counts_);
  std::vector<std::int32_t> counts(static_cast<std::size_t>(2 * options_.input.classes));
  copy_to_host(device_.compute(), counts_, counts.data());
  std::int64_t right = 0;  // counts: samples and right ones, class by class
  for (std::size_t i = 0; i < counts.size(); i += 2) right += counts[i + 1];
  return right;
}

}  // namespace ringlet::train
