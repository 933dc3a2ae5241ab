// RunSetup: what all ranks of a run share and none may change. Made before the replicas' threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stop_request.h"
#include "data/dataset.h"
#include "data/pairs.h"
#include "train/batches/partition.h"
#include "train/files/model_info.h"
#include "train/files/run_lock.h"
#include "train/files/state.h"
#include "train/recipe/options.h"
#include "train/recipe/schedule.h"
#include "train/setup/pass_size.h"
#include "train/setup/stages_setup.h"
#include "train/task/replica_spec.h"

namespace ringlet::train {

/// Pairs that a run is measured on.
struct VerificationSet {
  std::string name;  ///< names_of_sets(), train/recipe/verify_spec.h
  std::shared_ptr<const data::Pairs> pairs;
};

struct RunSetup {
  TrainOptions options;
  data::Splits data;
  int replicas = 1;                             ///< of the whole model
  std::shared_ptr<const StagesSetup> stages{};  ///< null: the model is not cut
  /// The fields of options.recipe but `data`, and what they are: ranks compare them. Made here as a
  /// nlohmann::json allocates as it is destroyed, and ends a program that has no memory left.
  std::vector<std::pair<std::string, std::string>> recipe_entries;
  Partition partition;
  Schedule schedule;
  ReplicaSpec replica;
  std::vector<float> weights;  ///< of the training samples (Task::weights); empty: all count 1
  ModelInfo model;             ///< what the saved files say of the model
  data::LoaderOptions loader;  ///< of the training data
  /// Samples of one evaluation pass. Fixed for a kind of device, so that sums do not depend on the
  /// number of ranks. A GPU is filled by more of them.
  std::int64_t evaluation_batch = 0;
  std::vector<VerificationSet> verification;  ///< in the order of --verify
  PassOfPairs verification_pass;              ///< fixed as evaluation_batch is
  std::string precision_told{};  ///< what `--precision auto` took, and why (precision_trial.h)
  bool keeps_best = false;       ///< the model of the best test (best_test.h)
  std::int64_t first_step = 0;
  std::int64_t planned_steps = 0;
  std::int64_t last_step = 0;  ///< planned_steps, or less with --max-steps
  /// Steps that may be enqueued while an earlier one's loss is still on its way to the host, so
  /// that a GPU never waits for the host. 0 where kernels run in place: nothing could be gained.
  int steps_in_flight = 0;
  std::optional<SavedState> resumed;
  /// Of files.out, where the caller has claimed it. Null: train() does, for as long as it trains.
  std::shared_ptr<const RunLock> lock{};
  /// Asked once a step, and once a pass of an evaluation; true ends the run after it, on all ranks.
  StopRequest stop_requested = [] { return false; };
};

/// Checks the options against each other and the data, and works out everything above. What the
/// execution leaves open is decided here (train/sync/transport_choice.h), and so is
/// Precision::automatic: options.recipe of the setup has what was taken. `ranks`: of the world, a
/// multiple of the stages. `group`: the run's processes, for what they find out together (the costs
/// of a model in stages, the faster precision); all of them call this then. `resumed`: what
/// read_state() gives of Files::resume.
/// Throws ContractError or FileError with the remedy.
RunSetup make_run_setup(const TrainOptions& options, const data::Splits& data, int ranks,
                        std::optional<SavedState> resumed = {}, comm::Group* group = nullptr);

/// Whether it is the run in OUT that goes on: from its state, from another one in its folder, or
/// where OUT itself is a state. Asked at the start, while that is in its place.
bool goes_on_in_out(const RunSetup& setup);

/// Mean and deviation of pixels / 255.
struct Normalization {
  data::PerChannel mean, deviation;
};
/// Of what PictureSpec::normalize_by may be, other than "data". Source of ImageNet's: torchvision;
/// of CIFAR-10's: over all pixels of its training images. Throws ContractError where these are for
/// another number of channels.
Normalization normalization_named(const std::string& name, std::int64_t channels);

/// Throws FileError where OUT holds another run, which Files::force does not say to replace.
void require_own_folder(const RunSetup& setup);

/// What the samples of a step weigh together, added in their order; where all count 1, or all 0,
/// their number.
double weight_of_step(const RunSetup& setup, std::int64_t step);

/// The labels of a step's samples, in their order.
void labels_of_step(const RunSetup& setup, std::int64_t step, std::vector<std::int32_t>& labels);

/// Throws ContractError where the run would end at one of its steps, most often at the last one of
/// an epoch: a pass has one sample there, and a batch norm sees one pixel of it.
void require_trainable(const RunSetup& setup);

/// Throws ContractError where the centres of `classes` of a loss with a margin, whatever else a run
/// on so many ranks needs, are more than `memory` bytes: of each number on processors a value and
/// one of the optimiser's state.
void require_room(const TrainOptions& options, int ranks, std::int64_t classes,
                  std::uint64_t memory);

}  // namespace ringlet::train
