// A model and a training loop of one's own, on two replicas: each takes half of every batch, and
// their gradients become one. Prints the loss of the whole batch as it falls.
#include <cstdio>

#include "ringlet.h"

using namespace ringlet;

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv", nn::Conv2dOptions{.in_channels = 1, .out_channels = 8});  // 26 x 26
  net->add<nn::ReLU>("relu");
  net->add<nn::AvgPool2d>("pool", Pool2dSpec{});  // 13 x 13
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("out", 8 * 13 * 13, input.outputs);
  return net;
}

int main() {
  const data::Splits garments = data::make_synthetic({.train = 4000, .test = 500});

  // Each replica is a thread that runs this, on a device of its own.
  const auto replica = [&](Device& device, comm::Communicator& all) {
    train::BatchShares batches(garments.train, all.world(), {.batch_size = 64});
    train::Learner learner(device, all, make_net, {.max_batch = batches.largest()});
    while (const data::Batch* share = batches.next()) {
      const double loss = learner.step(*share, batches.world_samples(), {.lr = 0.05});
      if (all.rank() == 0 && batches.step() % 10 == 0) {
        std::printf("step %2ld  loss %.4f\n", batches.step(), loss);
      }
    }
  };
  train::run_replicas({.devices = {2, DeviceId{DeviceKind::cpu}}}, replica);
}
