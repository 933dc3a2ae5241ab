// A model in two stages, of which a rank fails in one of its program's actions: its layer, or the
// transport that a message or a sum goes over. How it fails is the test's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "nn/tape.h"
#include "tests/comm/failing_transport.h"
#include "tests/train/runs.h"

namespace ringlet::train {

/// Replicas of each of two stages.
inline constexpr int kReplicas = 2;

enum class In { forward, backward, move_in, move_out, sync };

inline const char* name_of(In action) {
  switch (action) {
    case In::forward:
      return "Forward";
    case In::backward:
      return "Backward";
    case In::move_in:
      return "MoveIn";
    case In::move_out:
      return "MoveOut";
    case In::sync:
      return "Sync";
  }
  return "?";
}

/// Springs once, on the first rank that comes to the action once it is armed.
struct Trap {
  In action = In::forward;
  std::function<void()> spring = [] {};
  std::atomic<bool> armed{false};
  std::atomic<int> left{1};

  void comes_to(In in) {
    if (armed && action == in && left.fetch_sub(1) > 0) spring();
  }
};

/// Hands its input on, and comes to the trap on the way there and back.
class Breaking final : public nn::Layer {
 public:
  explicit Breaking(std::shared_ptr<Trap> trap) : trap_(std::move(trap)) {}

  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    trap_->comes_to(In::forward);
    const nn::Variable y = tape.make(x.shape(), x.layout(), x.dtype());
    scale(tape.stream(), 1, x.value(), 0, y.value());
    tape.record("scale", {x}, y, 1.0F, [=, trap = trap_.get()](nn::Backward& backward) {
      trap->comes_to(In::backward);
      const auto [dx, beta] = backward.target(x);
      scale(backward.stream(), 1, backward.gradient(y), beta, dx);
    });
    return y;
  }

 private:
  std::shared_ptr<Trap> trap_;
};

/// Options of a run whose model has two stages, of which `stage` has the layer that breaks.
inline TrainOptions breaking_options(int ranks_here, int stage, const std::shared_ptr<Trap>& trap,
                                     PipelineSchedule schedule) {
  TrainOptions options = plain_options(ranks_here);
  options.recipe.model = "breaking";
  options.recipe.accumulate = 3;
  options.make_model = [=](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc1", input.channels * input.height * input.width, 24);
    if (stage == 0)
      net->add<Breaking>("breaking", trap);  // behind what learns, or nothing comes back
    net->add<nn::Linear>("fc2", 24, 16);
    if (stage == 1) net->add<Breaking>("breaking", trap);
    net->add<nn::Linear>("fc3", 16, input.outputs);
    return net;
  };
  options.execution.pipeline = schedule;
  options.execution.stages = stage == 0 ? "flatten..breaking,fc2..fc3" : "flatten..fc1,fc2..fc3";
  return options;
}

/// What messages call the layers of `stage`, which has the layer that breaks.
inline std::string stage_in_words(int stage) {
  return stage == 0 ? "stage 0 (flatten .. breaking)" : "stage 1 (fc2 .. fc3)";
}

/// A group one of whose ranks comes to the trap on the way of its messages and sums.
class TrappedGroup final : public comm::Group {
 public:
  TrappedGroup(comm::Group& inner, int rank, std::shared_ptr<Trap> trap)
      : Group(inner.first_rank(), inner.replicas(), inner.size()),
        inner_(inner),
        rank_(rank),
        trap_(std::move(trap)) {}

  int machines() const override { return inner_.machines(); }
  int channels() const override { return inner_.channels(); }
  comm::Transport& channel(int rank, int number) override {
    comm::Transport& own = inner_.channel(rank, number);
    std::unique_ptr<comm::FailingTransport>* const failing = rank != rank_      ? nullptr
                                                             : number == kMoves ? &moves_
                                                             : number == kSums  ? &sums_
                                                                                : nullptr;
    if (failing == nullptr) return own;
    if (!*failing) {
      *failing = std::make_unique<comm::FailingTransport>(own, comm::FailingTransport::kNever);
      (*failing)->on_exchange = [trap = trap_, number](int to, int from) {
        if (number == kSums) return trap->comes_to(In::sync);
        if (to != comm::kNobody) trap->comes_to(In::move_out);
        if (from != comm::kNobody) trap->comes_to(In::move_in);
      };
    }
    return **failing;
  }
  void open_channels(int count) override { inner_.open_channels(count); }
  bool abort(int rank, const std::string& message) noexcept override {
    return inner_.abort(rank, message);
  }
  std::string agree(const std::string& key, const std::optional<std::string>& mine,
                    double timeout_seconds) override {
    return inner_.agree(key, mine, timeout_seconds);
  }
  std::shared_ptr<void> share(const std::string& key, std::int64_t bytes,
                              double timeout_seconds) override {
    return inner_.share(key, bytes, timeout_seconds);
  }
  void name_ranks(const comm::RankNames::Words& words) override {
    Group::name_ranks(words);
    inner_.name_ranks(words);
  }

 private:
  static constexpr int kMoves = 1, kSums = 2;  // channels: of the mesh's axes

  comm::Group& inner_;
  int rank_;
  std::shared_ptr<Trap> trap_;
  std::unique_ptr<comm::FailingTransport> moves_, sums_;
};

}  // namespace ringlet::train
