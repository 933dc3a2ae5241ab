// An all-reduce of one's own: a binary tree. Each rank adds what its children send and passes the
// sum on to its parent; the root's sum goes back the same way. 2 log2(p) steps, 2 (p-1) messages.
//
//                 0
//               /   \          rank r has the parent (r - 1) / 2
//              1     2         and the children 2 r + 1 and 2 r + 2
//             / \    |
//            3   4   5
//
// It says its name, what it needs and what it costs, and is added to a run's strategies. From then
// on it is run by its name. Its sums are compared with the naive strategy's byte by byte, `auto`
// weighs it against the others by that cost, and a run is trained with it.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport/local/local_transport.h"
#include "data/synthetic.h"
#include "kernels/memory.h"
#include "train/trainer.h"

using namespace ringlet;

class BinaryTree : public comm::AllReduce {
 public:
  static constexpr const char* kName = "binary-tree";
  static constexpr comm::Needs kNeeds = comm::Needs::nothing;  // beyond sending and receiving
  /// Of the longest path, for `bytes` on each rank: a parent has two children, one after the other.
  static comm::PathCost path_cost(int ranks, double bytes) {
    double messages = 0;
    for (int rank = ranks - 1; rank > 0; rank = (rank - 1) / 2) {
      const int sibling = rank % 2 == 0 ? rank - 1 : rank + 1;
      messages += sibling < ranks ? 2 : 1;
    }
    return {2 * messages, 2 * messages * bytes, messages * bytes};
  }

  using AllReduce::AllReduce;
  const char* name() const override { return kName; }

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

/// What `auto` picks for so many bytes between ranks that only send and receive.
std::string picked(const comm::Strategies& strategies, int ranks, std::int64_t bytes) {
  comm::LocalGroup group(1, {.first_rank = 0, .world_size = ranks});
  return comm::Communicator(group.transport(0), {.strategy = "auto", .strategies = strategies})
      .strategy_for(bytes);
}

int main() {
  comm::Strategies strategies;
  strategies.add<BinaryTree>();
  for (const int ranks : {1, 2, 3, 6, 8}) {
    train::Execution how{.devices = std::vector<DeviceId>(static_cast<std::size_t>(ranks))};
    how.sync = "naive";
    const auto naive = sums(ranks, how);
    how.strategies = strategies;
    how.sync = "binary-tree";
    if (sums(ranks, how) != naive) return std::printf("%d ranks: the sums differ\n", ranks), 1;
  }
  std::printf("1, 2, 3, 6 and 8 ranks: the same sums as naive\n");
  for (const std::int64_t bytes : {4, 64 << 20}) {
    const std::string name = picked(strategies, 8, bytes);
    std::printf("auto, 8 ranks, %lld bytes: %s\n", static_cast<long long>(bytes), name.c_str());
    if (name == "binary-tree") return 1;  // doubling has fewer steps, a ring fewer bytes
  }

  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.epochs = 1;
  options.execution.devices.resize(4);
  const data::Splits garments = data::make_synthetic({.train = 4000, .test = 500});
  double loss[2];
  for (const bool own : {false, true}) {
    options.execution.strategies = strategies;
    options.execution.sync = own ? "binary-tree" : "naive";
    LossKeeper keeper;
    train::RunListener* listeners[] = {&keeper};
    train::train(make_run_setup(options, garments, 4), listeners);
    loss[own ? 1 : 0] = keeper.loss;
  }
  std::printf("an epoch on 4 replicas: loss %.5f by naive, %.5f by the binary tree\n", loss[0],
              loss[1]);
  return std::abs(loss[0] - loss[1]) < 1e-3 ? 0 : 1;  // they round in another order
}
