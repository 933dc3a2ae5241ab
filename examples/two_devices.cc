// A model on two devices: the encoder on the first, the decoder on the second. Two replicas of each
// share the batch, so that four devices work. The loop is one's own.
#include <cstdio>

#include "ringlet.h"

using namespace ringlet;

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& images) {
  auto net = std::make_unique<nn::Sequential>();
  auto& encoder = net->add<nn::Sequential>("encoder");
  encoder.add<nn::Conv2d>("conv", nn::Conv2dOptions{images.channels, 8, {5, 5}});
  encoder.add<nn::ReLU>("relu");
  encoder.add<nn::MaxPool2d>("pool", Pool2dSpec{});
  auto& decoder = net->add<nn::Sequential>("decoder");
  decoder.add<nn::Flatten>("flatten");
  decoder.add<nn::Linear>("fc", 8 * 12 * 12, images.outputs);
  return net;
}

int main() {
  constexpr std::int64_t kBatch = 64;  // of all replicas
  const data::Splits garments =
      data::open_dataset("synthetic", {.synthetic_train = 2048, .synthetic_test = 64});
  train::Execution execution;
  execution.stages = "encoder,decoder";
  execution.devices.resize(4);  // cpu; cuda: {{DeviceKind::cuda, 0}, {DeviceKind::cuda, 1}, ...}
  train::LearnerOptions options;
  options.input = {1, 28, 28, 10};
  options.max_batch = kBatch / 2;
  options.micro_batches = 4;
  options.stages = execution.stages;
  double first = 0, last = 0;
  train::run_ranks(execution, [&](Device& device, const train::Ranks& ranks) {
    train::Learner learner(device, ranks, make_net, options);
    // Both stages of a replica read its samples: the encoder images, the decoder labels.
    const auto share = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (k == 2048 / kBatch) return {};
      const std::int64_t begin = k * kBatch + ranks.replica() * kBatch / 2;
      return data::BatchRequest{0, begin, begin + kBatch / 2};
    };
    data::Loader loader(garments.train, Sampler(2048, 1, false), share, {.max_batch = kBatch / 2});
    bool begun = false;
    while (const data::Batch* batch = loader.next()) {
      const double loss = learner.step(*batch, kBatch, {.lr = 0.05, .momentum = 0.9});
      if (ranks.world.rank() == 0) (begun ? last : first) = loss;
      begun = true;
    }
  });
  std::printf("loss %.4f, after an epoch %.4f\n", first, last);
  return last < 0.5 * first ? 0 : 1;
}
