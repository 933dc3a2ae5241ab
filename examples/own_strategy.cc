// An all-reduce of one's own: a binary tree. Each rank adds what its children send and passes the
// sum on to its parent; the root's sum goes back the same way. 2 log2(p) steps, 2 (p-1) messages.
//
//                 0
//               /   \          rank r has the parent (r - 1) / 2
//              1     2         and the children 2 r + 1 and 2 r + 2
//             / \    |
//            3   4   5
//
// Its sums are compared with the naive strategy's byte by byte, and a run is trained with it.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "comm/transport/local/local_transport.h"
#include "data/synthetic.h"
#include "kernels/memory.h"
#include "train/trainer.h"

using namespace ringlet;

class BinaryTree : public comm::AllReduce {
 public:
  using AllReduce::AllReduce;
  const char* name() const override { return "binary-tree"; }

  void run(Stream& stream, View data, ReduceOp op) override {
    for (const int child : {2 * rank() + 1, 2 * rank() + 2}) {
      if (child < size()) transport().receive(stream, child, data, comm::combine_of(op));
    }
    if (rank() == 0) finish(stream, data, op);
    if (rank() > 0) {
      transport().send(stream, parent(), data);
      transport().receive(stream, parent(), data);
    }
    for (const int child : {2 * rank() + 1, 2 * rank() + 2}) {
      if (child < size()) transport().send(stream, child, data);
    }
  }

  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    int messages = rank() > 0 ? 1 : 0;
    for (const int child : {2 * rank() + 1, 2 * rank() + 2}) messages += child < size() ? 1 : 0;
    return messages * count;
  }

 private:
  int parent() const { return (rank() - 1) / 2; }
};

std::unique_ptr<comm::AllReduce> make_tree(comm::Transport& transport) {
  return std::make_unique<BinaryTree>(transport);
}

/// Every rank's sum of whole numbers, which floats add without rounding in any order.
std::vector<std::vector<float>> sums(int ranks, const train::Execution& how) {
  constexpr std::int64_t kCount = 1000;
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  train::run_replicas(how, [&](Device& device, comm::Communicator& all) {
    std::vector<float>& mine = results[static_cast<std::size_t>(all.rank())];
    for (int i = 0; i < kCount; ++i) mine.push_back(static_cast<float>((i + 1) * (all.rank() + 1)));
    all.all_reduce(device.communication(), View(mine.data(), {kCount}, DType::f32), "numbers");
    device.communication().synchronize();
  });
  return results;
}

/// Mean training loss of one epoch.
class LossKeeper : public train::RunListener {
 public:
  void epoch_done(const train::EpochReport& report) override { loss = report.train_loss; }
  double loss = 0;
};

int main() {
  for (const int ranks : {1, 2, 3, 6, 8}) {
    train::Execution how{.devices = std::vector<DeviceId>(static_cast<std::size_t>(ranks))};
    how.sync = "naive";
    const auto naive = sums(ranks, how);
    how.make_sync = make_tree;
    if (sums(ranks, how) != naive) return std::printf("%d ranks: the sums differ\n", ranks), 1;
  }
  std::printf("1, 2, 3, 6 and 8 ranks: the same sums as naive\n");

  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.epochs = 1;
  options.execution.devices.resize(4);
  const data::Splits garments = data::make_synthetic({.train = 4000, .test = 500});
  double loss[2];
  for (const bool own : {false, true}) {
    options.execution.sync = "naive";
    if (own) options.execution.make_sync = make_tree;
    LossKeeper keeper;
    train::RunListener* listeners[] = {&keeper};
    train::train(make_run_setup(options, garments, 4), listeners);
    loss[own ? 1 : 0] = keeper.loss;
  }
  std::printf("an epoch on 4 replicas: loss %.5f by naive, %.5f by the binary tree\n", loss[0],
              loss[1]);
  return std::abs(loss[0] - loss[1]) < 1e-3 ? 0 : 1;  // they round in another order
}
