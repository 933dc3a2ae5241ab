// Two towers: a net for each of two inputs, whose answers meet in a third. Which of two rooms is
// larger is learnt by binary cross-entropy, in a loop of one's own on two replicas.
#include <cmath>
#include <cstdio>

#include "nn/ops/concat.h"
#include "nn/ops/pointwise_loss.h"
#include "ringlet.h"

using namespace ringlet;

/// As a layer it owns the parameters; the task below calls both towers.
class Towers final : public nn::Layer {
 public:
  Towers() {
    for (nn::Sequential* tower : {&left, &right}) {
      tower->add<nn::Linear>("fc", 2, 16);
      tower->add<nn::Tanh>("tanh");
    }
    top.add<nn::Linear>("fc", 32, 1);
  }
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    return top.forward(tape, x);
  }
  bool takes(Layout layout) const override {  // what the layers within do
    return left.takes(layout) && right.takes(layout) && top.takes(layout);
  }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    left.register_in(registry, prefix + "left.");
    right.register_in(registry, prefix + "right.");
    top.register_in(registry, prefix + "top.");
  }
  nn::Sequential left, right, top;
};

class WhichIsLarger final : public train::Task {
  nn::Variable output(nn::Tape& tape, nn::Layer& model, const nn::Batch& batch) const override {
    auto& towers = dynamic_cast<Towers&>(model);
    return towers.forward(tape, nn::concat({towers.left.forward(tape, batch.input("one")),
                                            towers.right.forward(tape, batch.input("other"))}));
  }
  nn::Variable loss(const nn::Variable& logit, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::binary_cross_entropy(logit, batch["larger"], sum);
  }
};

int main() {
  constexpr std::int64_t kSamples = 512;  // of both ranks together
  std::vector<float> one, other, larger;
  for (int i = 0; i < kSamples; ++i) {
    const float a = 1 + std::sin(1.3F * i), b = 1 + std::cos(2.1F * i), c = 1 + std::sin(0.7F * i),
                d = 1 + std::cos(3.3F * i);
    one.insert(one.end(), {a, b});
    other.insert(other.end(), {c, d});
    larger.push_back(a * b > c * d ? 1.0F : 0.0F);
  }
  double first = 0, last = 0;
  const auto replica = [&](Device& device, comm::Communicator& all) {
    nn::ModelInput no_images;
    no_images.channels = no_images.outputs = 0;
    train::Learner learner(device, all, [](auto&) { return std::make_unique<Towers>(); },
                           {.input = no_images,
                            .fields = {{"one", {2}}, {"other", {2}}, {"larger", {1}}},
                            .task = std::make_shared<const WhichIsLarger>(),
                            .max_batch = kSamples / 2});
    const std::int64_t begin = all.rank() * kSamples / 2;
    data::Batch mine;
    mine.n = kSamples / 2;
    mine.fields = {one.data() + 2 * begin, other.data() + 2 * begin, larger.data() + begin};
    for (int step = 0; step < 300; ++step) {
      const double loss = learner.step(mine, kSamples, {.lr = 0.5, .momentum = 0.9});
      if (all.rank() == 0) (step == 0 ? first : last) = loss;
    }
  };
  train::run_replicas({.devices = {2, DeviceId{}}}, replica);
  std::printf("loss %.4f, after 300 steps %.4f\n", first, last);
  return last < 0.5 * first ? 0 : 1;
}
