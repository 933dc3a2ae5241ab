#include "train/sync/sync_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/files/atomic_file.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

/// Reads a time off between the measured sizes, on logarithmic scales. Below the least size it is
/// that size's time, above the largest it grows with the bytes. Nothing where none was measured.
std::optional<double> read_off(const std::vector<MeasuredTime>& times, int ranks,
                               const std::string& strategy, std::int64_t bytes) {
  const MeasuredTime* below = nullptr;
  const MeasuredTime* above = nullptr;
  for (const MeasuredTime& time : times) {
    if (time.ranks != ranks || time.strategy != strategy) continue;
    if (time.bytes <= bytes && (below == nullptr || time.bytes > below->bytes)) below = &time;
    if (time.bytes >= bytes && (above == nullptr || time.bytes < above->bytes)) above = &time;
  }
  if (below == nullptr && above == nullptr) return {};
  if (below == nullptr) return above->seconds;
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  if (above == nullptr) return below->seconds * ratio(bytes, below->bytes);
  if (above->bytes == below->bytes) return below->seconds;
  const double way =
      std::log(ratio(bytes, below->bytes)) / std::log(ratio(above->bytes, below->bytes));
  return below->seconds * std::pow(above->seconds / below->seconds, way);
}

bool predict_from_times(SyncPlan& plan, int ranks, const std::vector<MeasuredTime>& times) {
  for (PlannedSum& sum : plan.sums) {
    if (sum.between != DType::f32) return false;  // nobody measures that
    const auto seconds = read_off(times, ranks, sum.strategy, sum.bytes);
    if (!seconds) return false;
    sum.seconds = *seconds;
  }
  return true;
}

bool predict_by_costs(SyncPlan& plan, const comm::Communicator& communicator) {
  for (PlannedSum& sum : plan.sums) {
    const auto seconds = communicator.predicted_seconds(sum.bytes, sum.between);
    if (!seconds) return false;
    sum.seconds = *seconds;
  }
  return true;
}

}  // namespace

const char* name_of(PredictedFrom source) {
  if (source == PredictedFrom::tuning) return "tune";
  return source == PredictedFrom::model ? "model" : "";
}

double SyncPlan::seconds() const {
  double total = 0;
  for (const PlannedSum& sum : sums) total += sum.seconds;
  return total;
}

std::int64_t SyncPlan::bytes() const {
  std::int64_t total = 0;
  for (const PlannedSum& sum : sums) total += sum.bytes;
  return total;
}

SyncPlan plan_sync(const comm::Communicator& communicator, const std::vector<Bucket>& buckets,
                   DeviceKind device, const std::vector<MeasuredTime>& times) {
  SyncPlan plan;
  if (communicator.size() == 1) return plan;
  for (const Bucket& bucket : buckets) {
    plan.sums.push_back(
        {bucket.name, bucket.wire_bytes(), strategy_of(bucket, communicator), bucket.between});
  }
  if (predict_from_times(plan, communicator.size(), times)) {
    plan.source = PredictedFrom::tuning;
  } else if (device == DeviceKind::cpu && predict_by_costs(plan, communicator)) {
    plan.source = PredictedFrom::model;
  } else {
    for (PlannedSum& sum : plan.sums) sum.seconds = 0;
  }
  return plan;
}

SyncPlan plan_sync(const comm::Communicator& communicator, const std::vector<Bucket>& buckets,
                   const Execution& execution) {
  const DeviceKind device = execution.devices.front().kind;
  std::vector<MeasuredTime> times;
  try {
    const bool is_foreign = !why_foreign(tuning_file()).empty();
    if (!is_foreign) {
      times = read_times(tuning_file(), device,
                         tuned_transport(communicator.transport(), name_of(execution.transport)));
    }
  } catch (const FileError&) {  // a prediction is not worth a run
  }
  return plan_sync(communicator, buckets, device, times);
}

}  // namespace ringlet::train
