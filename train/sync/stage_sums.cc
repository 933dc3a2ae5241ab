#include "train/sync/stage_sums.h"

#include "kernels/elementwise.h"

namespace ringlet::train {

StageSums::StageSums(Device& device, comm::Communicator& stages, std::int64_t numbers)
    : device_(device),
      stages_(stages),
      meeting_(device, stages),
      all_(device, {stages.size() * numbers}) {}

void StageSums::add(View statistics) {
  Stream& compute = device_.compute();
  meeting_.hold(compute, [&](Stream& stream) {
    stages_.all_gather(stream, statistics, all_, "statistics of the stages");
  });
  const std::int64_t numbers = statistics.count();
  copy(compute, all_.view().slice(0, numbers), statistics);
  for (int stage = 1; stage < stages_.size(); ++stage) {
    accumulate(compute, all_.view().slice(stage * numbers, (stage + 1) * numbers), statistics);
  }
}

}  // namespace ringlet::train
