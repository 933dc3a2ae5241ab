#include "train/sync/stage_sums.h"

#include "kernels/elementwise.h"

namespace ringlet::train {

StageSums::StageSums(Device& device, comm::Communicator& stages, std::int64_t numbers)
    : device_(device),
      stages_(stages),
      meeting_(device, stages),
      all_(device, {stages.size() * numbers}),
      square_(device, {kDoubleBytes}, DType::u8),
      squares_(device, {stages.size() * kDoubleBytes}, DType::u8) {}

void StageSums::add(View statistics, ConstView gradients, View norm, const NormLimit& limit) {
  Stream& compute = device_.compute();
  square_sum(compute, gradients, square_);
  meeting_.hold(compute, [&](Stream& stream) {
    stages_.all_gather(stream, statistics, all_, "statistics of the stages");
    stages_.all_gather(stream, square_, squares_, "squares of the stages");
  });
  const std::int64_t numbers = statistics.count();
  copy(compute, all_.view().slice(0, numbers), statistics);
  for (int stage = 1; stage < stages_.size(); ++stage) {
    accumulate(compute, all_.view().slice(stage * numbers, (stage + 1) * numbers), statistics);
  }
  norm_of_sums(compute, squares_, norm, limit);
}

}  // namespace ringlet::train
