#include "train/sync/world_statistics.h"

#include <algorithm>

#include "kernels/batch_norm.h"
#include "kernels/elementwise.h"

namespace ringlet::train {

namespace {

std::int64_t widest(const nn::Registry& registry) {
  std::int64_t channels = 1;
  for (const nn::RunningStatistics* running : registry.running) {
    channels = std::max(channels, running->mean.shape.count());
  }
  return channels;
}

}  // namespace

WorldStatistics::WorldStatistics(Device& device, comm::Communicator& communicator,
                                 const nn::Registry& registry)
    : device_(device),
      communicator_(communicator),
      parts_(device, {communicator.size() * (2 * widest(registry) + 1)}),
      meeting_(device, communicator) {
  fill(device.compute(), 0, parts_);
}

void WorldStatistics::rehearse() {
  meeting_.rehearse(parts_.view());
  const Tensor moments(device_, {2, 1});
  const std::int64_t ranks = communicator_.size();
  batch_norm_merge(device_.compute(), parts_.view().slice(0, 3 * ranks).reshaped({ranks, 3}), 1,
                   moments);
  device_.compute().synchronize();
}

void WorldStatistics::merge_moments(Stream& compute, ConstView part, std::int64_t pixels,
                                    View moments) {
  const std::int64_t ranks = communicator_.size(), numbers = part.count();
  const View all = parts_.view().slice(0, ranks * numbers);
  meeting_.hold(compute, [&](Stream& stream) {
    communicator_.all_gather(stream, part, all, "batch norm's moments");
  });
  batch_norm_merge(compute, all.reshaped({ranks, numbers}), pixels, moments);
}

void WorldStatistics::sum(Stream& compute, View numbers) {
  meeting_.hold(compute, [&](Stream& stream) {
    communicator_.all_reduce(stream, numbers, "batch norm's gradient");
  });
}

}  // namespace ringlet::train
