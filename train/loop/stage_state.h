// StageState: the numbers of a whole model on rank 0, which alone reads and writes files, and those
// of each stage on its ranks.
//
// Rank 0 is a replica of stage 0. It asks the first replica of each other stage for its tensors,
// one stage after the other, and puts them where the whole model has them by name: files know no
// stages. The other way, each first replica is sent the tensors of its stage. Where rows are cut
// over the replicas of a stage, its first one collects them before, and deals them out behind.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "nn/layer.h"
#include "train/files/state.h"
#include "train/loop/ranks.h"
#include "train/loop/train_step.h"
#include "train/setup/stages_setup.h"

namespace ringlet::train {

class StageState {
 public:
  /// `spec`: of the whole model. `stages` outlive this, and so does what `ranks` are of.
  StageState(const StagesSetup& stages, const ReplicaSpec& spec, const Ranks& ranks);
  ~StageState();

  /// The whole model's, its parameters without memory.
  const nn::Registry& registry() const;

  /// Whether rows are cut over the replicas of a stage. The same on all ranks.
  bool is_sharded() const;
  /// What the optimisers of all stages keep, in the order of a model in one stage. Collective.
  std::vector<ArenaSpec> arenas(const Optimizer& optimizer) const;

  /// On rank 0 the state of the whole model; on others nothing. Without `rows_of_loss`, nothing of
  /// the loss's own parameters. Collective.
  HostState collect(TrainStep& step, bool rows_of_loss = true);
  /// The other way: each stage's first replica takes up what is its own of what rank 0 has `read`,
  /// if that is anything, and returns it for TrainStep::broadcast_state(), which has to follow.
  /// Collective.
  std::optional<HostState> hand_out(TrainStep& step, const HostState* read);

 private:
  struct Part;  // a stage
  void exchange(int to, std::vector<float>* out, int from, std::vector<float>* in);
  const Part& own_part() const;

  const StagesSetup& stages_;
  Ranks ranks_;
  bool exact_;
  std::unique_ptr<Device> host_;
  std::vector<Part> parts_;  // of all stages
};

}  // namespace ringlet::train
