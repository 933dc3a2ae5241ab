// Evaluator: loss, and what the task measures, over a whole data set, shared by the ranks.
//
// The set is cut into passes of a fixed size. Of P ranks, rank i mod P runs pass i. Each pass has a
// slot of its own in a vector, which is summed over the ranks. Only one rank puts a number into a
// slot. So every sample counts once, and the result has the same bits for any number of ranks.
//
// Photographs are taken in a shuffled order, the same one always. In a folder's order a pass would
// be of one kind, and large pictures of one kind would be one rank's work.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/stop_request.h"
#include "comm/communicator.h"
#include "train/batches/batch_source.h"
#include "train/loop/ranks.h"
#include "train/loop/replica.h"
#include "train/loop/stage_link.h"
#include "train/reports/reports.h"
#include "train/sync/data_axis.h"

namespace ringlet::train {

/// How an evaluation went. But for `failure` equal on all ranks.
struct Tested {
  std::optional<Evaluation> result{};  ///< nothing where passes are missing
  bool stop_wished = false;            ///< somebody asked to stop, before its end or just now
  bool failed = false;                 ///< samples could not be read
  std::exception_ptr failure{};        ///< of this rank, if it was this one's
};

class Evaluator {
 public:
  /// `batch`: samples of a pass; `loader` gives layout and normalisation. `axis`: where rows are
  /// cut over the ranks, in each of whose passes all others take part; may be null.
  /// `communicator`: of the replicas.
  Evaluator(Replica& replica, comm::Communicator& communicator,
            std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions loader,
            std::int64_t batch, DataAxis* axis = nullptr);
  /// The same of a stage. The last one measures; the first one reads, and says before each pass
  /// whether there is one.
  Evaluator(Replica& replica, const Ranks& ranks, std::shared_ptr<const data::Dataset> dataset,
            data::LoaderOptions loader, std::int64_t batch, DataAxis* axis, StageLink* link);

  /// Samples of this rank's passes, each number once.
  std::vector<std::int64_t> pass_sizes() const;

  /// Runs this rank's passes and sums over ranks; every rank gets the whole result. A rank on which
  /// `stop` says so between two passes, or whose samples cannot be read, makes no further one. What
  /// then is missing is no error: all ranks learn of it together. Such an evaluator is spent.
  Tested run(const StopRequest& stop = {});

 private:
  /// Makes this rank's passes, and notes what keeps it from that.
  void make_passes(const StopRequest& stop, Tested& mine, bool& whole);
  void make_passes_of_stage(const StopRequest& stop, Tested& mine, bool& whole);
  const data::Batch* next_of_chain(const StopRequest& stop, Tested& mine, bool& whole);
  std::int64_t end_of_rounds() const;
  void begin_round(std::int64_t pass);
  Tested outcome_of(const std::vector<float>& sums, Tested mine) const;
  Evaluation summarize(const std::vector<float>& sums) const;
  View numbers_of(std::int64_t pass) const;
  std::int64_t size_of_pass(std::int64_t pass) const;

  Replica& replica_;
  Ranks ranks_;
  comm::Communicator& communicator_;
  StageLink* link_;  // null: one stage
  std::shared_ptr<const data::Dataset> dataset_;
  std::int64_t batch_;
  std::int64_t passes_;
  MetricSpec metric_;
  Tensor losses_;   // f32 [passes]
  Tensor numbers_;  // the metric's: i32 [numbers], or f32 [passes * numbers]
  Tensor sums_;     // f32: both, and behind them how many ranks wish what Flag says
  std::unique_ptr<Event> ready_;
  std::unique_ptr<BatchSource> batches_;
  DataAxis* axis_;
  std::vector<std::int64_t> samples_by_rank_;  // of a pass, where rows are cut
};

}  // namespace ringlet::train
