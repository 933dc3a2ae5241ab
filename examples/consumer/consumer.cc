// A program of another project: two replicas learn one layer, and the loss falls.
#include "ringlet.h"

using namespace ringlet;

int main() {
  const data::Splits garments = data::make_synthetic({.train = 1280, .test = 1});
  const auto make_net = [](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("out", 28 * 28, input.outputs);
    return net;
  };
  double first = 0, last = 0;
  train::run_replicas({.devices = {2, DeviceId{}}}, [&](Device& device, comm::Communicator& all) {
    train::BatchShares batches(garments.train, all.world(), {.batch_size = 64});
    train::Learner learner(device, all, make_net, {.max_batch = batches.largest()});
    while (const data::Batch* share = batches.next()) {
      const double loss = learner.step(*share, batches.world_samples(), {.lr = 0.05});
      if (all.rank() == 0) (first == 0 ? first : last) = loss;
    }
  });
  return last < first ? 0 : 1;
}
