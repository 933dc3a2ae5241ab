#include "nn/models/mlp.h"

#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"

namespace ringlet::nn {

std::unique_ptr<Layer> make_mlp(const ModelInput& input) {
  const std::int64_t features = std::int64_t{input.channels} * input.height * input.width;
  auto net = std::make_unique<Sequential>();
  net->add<Flatten>("flatten");
  net->add<Linear>("fc1", features, 256);
  net->add<ReLU>("relu1");
  net->add<Linear>("fc2", 256, 128);
  net->add<ReLU>("relu2");
  net->add<Linear>("fc3", 128, input.outputs);
  return net;
}

}  // namespace ringlet::nn
