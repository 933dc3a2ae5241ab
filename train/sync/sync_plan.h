// SyncPlan: how a run is going to sum the replicas' gradients, bucket by bucket, and how long that
// should take. It is reported before the first step. SyncReport (reports.h) has what it took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/recipe/options.h"
#include "train/sync/gradient_sync.h"
#include "train/sync/tuning.h"

namespace ringlet::train {

/// Where the predicted times come from.
enum class PredictedFrom : std::uint8_t {
  nowhere,  ///< GPUs that `ringlet tune` has not measured: there are no round figures for them
  tuning,   ///< what `ringlet tune` measured on this machine, read off between the sizes
  model     ///< the cost model with round figures for the transport (comm/all_reduce/cost_model.h)
};

/// "tune", "model" or "".
const char* name_of(PredictedFrom source);

struct PlannedSum {
  std::string name;        ///< the bucket's
  std::int64_t bytes = 0;  ///< on the wire, of each rank
  std::string strategy;
  DType between = DType::f32;  ///< Bucket::between
  double seconds = 0;          ///< predicted, of the collective alone
};

struct SyncPlan {
  std::vector<PlannedSum> sums{};  ///< by bucket; empty with one rank
  PredictedFrom source = PredictedFrom::nowhere;
  double seconds() const;  ///< of all of them, one after another
  std::int64_t bytes() const;
};

/// `times`: what was measured on this machine for this device and transport (read_times()).
SyncPlan plan_sync(const comm::Communicator& communicator, const std::vector<Bucket>& buckets,
                   DeviceKind device, const std::vector<MeasuredTime>& times);

/// The same with this machine's times, of which a file that cannot be read has none.
SyncPlan plan_sync(const comm::Communicator& communicator, const std::vector<Bucket>& buckets,
                   const Execution& execution);

}  // namespace ringlet::train
