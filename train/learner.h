// Learner: a replica for training loops of one's own. It owns a model, its optimiser and the
// synchronisation of gradients, and knows nothing of epochs, schedules, states and reports; the
// library's own loop is train/loop/train_loop.h.
//
//   run_replicas({.devices = {2, DeviceId{}}}, [&](Device& device, comm::Communicator& all) {
//     Learner learner(device, all, make_my_model, {.input = {1, 28, 28, 10}, .max_batch = 32});
//     while (const data::Batch* batch = my_batches.next()) {
//       const double loss = learner.step(*batch, 64, {.lr = 0.1, .momentum = 0.9});
//     }
//   });
//
// Every rank makes the same steps, with the same rates, on its own samples.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "data/loader.h"
#include "kernels/async_copy.h"
#include "kernels/memory.h"
#include "train/loop/replica.h"
#include "train/loop/step_inputs.h"
#include "train/optimizers/optimizer.h"
#include "train/optimizers/schedule.h"
#include "train/sync/gradient_sync.h"

namespace ringlet::train {

struct LearnerOptions {
  nn::ModelInput input{};       ///< what the model is made for
  std::int64_t max_batch = 64;  ///< samples of this rank's largest batch
  std::uint64_t seed = 1;       ///< of the weights and of dropout
  bool nesterov = false;
  double weight_decay = 0;
  std::int64_t bucket_kb = 1024;      ///< see GradientSync
  std::int64_t first_bucket_kb = -1;  ///< see GradientSync
  bool overlap = true;                ///< see GradientSync
  DType grad_dtype = DType::f32;      ///< see GradientSync
};

class Learner {
 public:
  /// The weights start as the model's initialisers say, alike on every rank; there is no need to
  /// send them around. Device and communicator must outlive the learner.
  Learner(Device& device, comm::Communicator& communicator, const MakeModel& make_model,
          const LearnerOptions& options);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  /// Forward, backward, sum over the ranks, update. `batch`: this rank's samples, images f32
  /// [n, C, H, W] in host memory; n may be 0 and may differ between ranks. `world_samples`: of all
  /// ranks together. Returns the mean loss over these, the same on every rank. Throws ContractError
  /// where the ranks' samples do not add up to `world_samples`, and where a gradient that travels
  /// as f16 or bf16 is beyond that; the update is then not made.
  double step(const data::Batch& batch, std::int64_t world_samples, const Rates& rates);

  /// How many samples of `batch` the model classifies rightly. This rank alone.
  std::int64_t count_right(const data::Batch& batch);

  nn::Parameters& parameters() { return replica_.parameters(); }

 private:
  data::Batch to_device(const data::Batch& batch);

  Device& device_;
  comm::Communicator& communicator_;
  LearnerOptions options_;
  Replica replica_;
  std::unique_ptr<Optimizer> optimizer_;
  GradientSync sync_;
  StepInputs inputs_;
  Tensor images_;  // f32 [max_batch, C, H, W]
  Tensor labels_;  // i32 [max_batch]
  Tensor loss_;    // f32 [1]
  Tensor counts_;  // i32 [2 K]
};

}  // namespace ringlet::train
