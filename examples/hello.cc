// A model and a training loop of one's own, on two replicas: each takes half of every batch, and
// their gradients become one. Prints the loss of the whole batch as it falls.
#include <cstdio>
#include <memory>
#include <optional>

#include "data/loader.h"
#include "data/synthetic.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "train/learner.h"
#include "train/trainer.h"

using namespace ringlet;

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Conv2d>("conv", nn::Conv2dOptions{.in_channels = 1, .out_channels = 8});  // 26 x 26
  net->add<nn::ReLU>("relu");
  net->add<nn::AvgPool2d>("pool", Pool2dSpec{});  // 13 x 13
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("out", 8 * 13 * 13, input.classes);
  return net;
}

int main() {
  constexpr int kReplicas = 2;
  constexpr std::int64_t kBatch = 64, kShare = kBatch / kReplicas, kSteps = 60;
  const data::Splits garments = data::make_synthetic({.train = kBatch * kSteps, .test = 500});

  // One thread a replica runs this, on a device of its own.
  const auto replica = [&](Device& device, comm::Communicator& all) {
    train::Learner learner(device, all, make_net, {.max_batch = kShare});
    const auto my_share = [&](std::int64_t step) -> std::optional<data::BatchRequest> {
      if (step == kSteps) return {};
      const std::int64_t begin = step * kBatch + all.rank() * kShare;
      return data::BatchRequest{.epoch = 0, .begin = begin, .end = begin + kShare};
    };
    data::Loader batches(garments.train, data::Sampler(garments.train->size(), /*seed=*/1),
                         my_share, {.max_batch = kShare});
    double sum = 0;
    for (std::int64_t step = 1; const data::Batch* batch = batches.next(); ++step) {
      sum += learner.step(*batch, kBatch, {.lr = 0.05, .momentum = 0.9});
      if (step % 10 != 0) continue;
      if (all.rank() == 0) std::printf("steps %2ld to %2ld  loss %.4f\n", step - 9, step, sum / 10);
      sum = 0;
    }
  };
  train::run_replicas({.devices = {kReplicas, DeviceId{DeviceKind::cpu}}}, replica);
}
