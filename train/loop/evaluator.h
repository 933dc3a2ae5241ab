// Evaluator: loss and accuracy over a whole data set, shared by the ranks.
//
// The set is cut into passes of a fixed size. Of P ranks, rank i mod P runs pass i. Each pass has a
// slot of its own in a vector, which is summed over the ranks. Only one rank puts a number into a
// slot. So every sample counts once, and the result has the same bits for any number of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "train/batches/batch_source.h"
#include "train/loop/replica.h"
#include "train/telemetry/reports.h"

namespace ringlet::train {

class Evaluator {
 public:
  /// `batch`: samples of a pass; `loader` gives layout and normalisation.
  Evaluator(Replica& replica, comm::Communicator& communicator,
            std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions loader,
            std::int64_t batch);

  /// Samples of this rank's passes, each number once.
  std::vector<std::int64_t> pass_sizes() const;

  /// Runs this rank's passes and sums over ranks; every rank gets the whole result.
  Evaluation run();

 private:
  data::BatchRequest pass(std::int64_t index) const;
  Evaluation summarize(const std::vector<float>& sums) const;

  Replica& replica_;
  comm::Communicator& communicator_;
  std::shared_ptr<const data::Dataset> dataset_;
  std::int64_t batch_;
  std::int64_t passes_;
  Tensor losses_;  // f32 [passes]
  Tensor counts_;  // i32 [2 K]
  Tensor sums_;    // f32 [passes + 2 K]
  std::unique_ptr<Event> ready_;
  std::unique_ptr<BatchSource> batches_;
};

}  // namespace ringlet::train
