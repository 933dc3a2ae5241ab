#include "train/pipeline/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/pipeline/simulate.h"

namespace ringlet::train {

namespace {

using Fault = std::optional<std::string>;

/// One message as one side has it.
struct HalfMessage {
  Payload payload = Payload::activation;
  int micro_batch = 0;
  bool operator==(const HalfMessage&) const = default;
  bool operator<(const HalfMessage& other) const {
    return std::tie(payload, micro_batch) < std::tie(other.payload, other.micro_batch);
  }
};

std::string words_of(const HalfMessage& message) {
  return fmt::format("{} {}", name_of(message.payload), message.micro_batch);
}

/// An F or B of one stage, in the order of its program. `letter` is F or B.
Fault fault_of_pass(const Pipeline& pipeline, int stage, char letter, int k, std::set<int>& done) {
  if (k < 0 || k >= pipeline.micro_batches) {
    return fmt::format("stage {} does {}{}, and there are {} micro-batches", stage, letter, k,
                       pipeline.micro_batches);
  }
  if (!done.insert(k).second) return fmt::format("stage {} does {}{} twice", stage, letter, k);
  return {};
}

/// Each F and B that is not there.
Fault fault_of_missing(const Pipeline& pipeline, int stage, const std::set<int>& forwards,
                       const std::set<int>& backwards) {
  for (int k = 0; k < pipeline.micro_batches; ++k) {
    if (forwards.count(k) == 0) return fmt::format("stage {} never does F{}", stage, k);
    if (backwards.count(k) == 0) return fmt::format("stage {} never does B{}", stage, k);
  }
  return {};
}

Fault fault_of_passes(const Pipeline& pipeline, int stage, const Program& program) {
  std::set<int> forwards, backwards;
  Fault early;  // told where all passes are there: else the one that is missing says more
  int last_forward = -1, last = -1;
  for (const Action& action : program) {
    if (const auto* forward = std::get_if<Forward>(&action)) {
      const int k = forward->micro_batch;
      if (Fault fault = fault_of_pass(pipeline, stage, 'F', k, forwards)) return fault;
      if (!early && k < last_forward) {
        early = fmt::format("stage {} does F{} behind F{}, and batches come in ascending order",
                            stage, k, last_forward);
      }
      last_forward = k;
    }
    const auto* backward = std::get_if<Backward>(&action);
    if (backward == nullptr) continue;
    const int k = backward->micro_batch;
    if (Fault fault = fault_of_pass(pipeline, stage, 'B', k, backwards)) return fault;
    if (!early && forwards.count(k) == 0) {
      early = fmt::format("stage {} does B{} before F{}", stage, k, k);
    }
    if (!early && k < last) {
      early = fmt::format("stage {} does B{} behind B{}, and gradients add in ascending order",
                          stage, k, last);
    }
    last = k;
  }
  const Fault missing = fault_of_missing(pipeline, stage, forwards, backwards);
  return missing ? missing : early;
}

Fault fault_of_sync(int stage, const Program& program) {
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (!std::holds_alternative<Sync>(program[at])) continue;
    if (at + 1 == program.size()) return {};
    return fmt::format("stage {} has '{}' behind its sync", stage, text_of(program[at + 1]));
  }
  return fmt::format("stage {} has no sync at its end", stage);
}

/// A side of a Move by itself: activations go to the next stage, gradients to the one before.
Fault fault_of_side(const Pipeline& pipeline, int stage, const Message& message, bool out) {
  const std::string words = out ? sending(message) : receiving(message);
  const int step = (message.payload == Payload::activation) == out ? 1 : -1;
  const bool there = message.peer >= 0 && message.peer < pipeline.stages();
  if (!there || message.peer != stage + step) {
    return fmt::format("stage {} {}: activations go to the next stage, gradients to the one before",
                       stage, words);
  }
  if (message.micro_batch < 0 || message.micro_batch >= pipeline.micro_batches) {
    return fmt::format("stage {} {}, and there are {} micro-batches", stage, words,
                       pipeline.micro_batches);
  }
  return {};
}

/// The messages from each stage to each other, in order, as one side has them.
struct Traffic {
  using Pair = std::pair<int, int>;  ///< from, to
  std::map<Pair, std::vector<HalfMessage>> sent{};
  std::map<Pair, std::vector<HalfMessage>> received{};
};

Fault collect(const Pipeline& pipeline, int stage, const Program& program, Traffic& traffic) {
  for (const Action& action : program) {
    const Move* move = std::get_if<Move>(&action);
    if (move == nullptr) continue;
    if (!move->out && !move->in) return fmt::format("stage {} has a move of nothing", stage);
    if (move->out) {
      const Message& out = *move->out;
      if (Fault fault = fault_of_side(pipeline, stage, out, true)) return fault;
      traffic.sent[{stage, out.peer}].push_back({out.payload, out.micro_batch});
    }
    if (move->in) {
      const Message& in = *move->in;
      if (Fault fault = fault_of_side(pipeline, stage, in, false)) return fault;
      traffic.received[{in.peer, stage}].push_back({in.payload, in.micro_batch});
    }
  }
  return {};
}

/// A message of `ones` that is twice there, or not among `others`.
const HalfMessage* odd_one(const std::vector<HalfMessage>& ones,
                           const std::vector<HalfMessage>& others, bool& twice) {
  std::set<HalfMessage> met;
  const std::set<HalfMessage> there(others.begin(), others.end());
  for (const HalfMessage& message : ones) {
    twice = !met.insert(message).second;
    if (twice || there.count(message) == 0) return &message;
  }
  return nullptr;
}

Fault fault_between(const Traffic::Pair& pair, const std::vector<HalfMessage>& sent,
                    const std::vector<HalfMessage>& received) {
  const auto [from, to] = pair;
  bool twice = false;
  if (const HalfMessage* message = odd_one(sent, received, twice)) {
    return fmt::format("stage {} sends {} to stage {}{}", from, words_of(*message), to,
                       twice ? " twice" : ", which never receives it");
  }
  if (const HalfMessage* message = odd_one(received, sent, twice)) {
    return fmt::format("stage {} receives {} from stage {}{}", to, words_of(*message), from,
                       twice ? " twice" : ", which never sends it");
  }
  for (std::size_t at = 0; at < sent.size(); ++at) {
    if (sent[at] == received[at]) continue;
    return fmt::format(
        "stage {} sends {} to stage {}, which receives {} first: one order is wanted", from,
        words_of(sent[at]), to, words_of(received[at]));
  }
  return {};
}

Fault fault_of_messages(const Pipeline& pipeline) {
  Traffic traffic;
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    const Program& program = pipeline.programs[static_cast<std::size_t>(stage)];
    if (Fault fault = collect(pipeline, stage, program, traffic)) return fault;
  }
  for (const auto& [pair, messages] : traffic.received) traffic.sent[pair];
  for (const auto& [pair, messages] : traffic.sent) {
    if (Fault fault = fault_between(pair, messages, traffic.received[pair])) return fault;
  }
  return {};
}

/// What a stage has of each micro-batch as it goes through its program.
struct OnHand {
  std::set<int> activations_in{}, gradients_in{}, forwards{}, backwards{};
};

Fault fault_of_data_of_move(int stage, const Move& move, OnHand& on_hand) {
  if (move.out) {
    const bool activation = move.out->payload == Payload::activation;
    const int k = move.out->micro_batch;
    if ((activation ? on_hand.forwards : on_hand.backwards).count(k) == 0) {
      return fmt::format("stage {} {} before {}{}", stage, sending(*move.out),
                         activation ? 'F' : 'B', k);
    }
  }
  if (move.in) {
    const bool activation = move.in->payload == Payload::activation;
    (activation ? on_hand.activations_in : on_hand.gradients_in).insert(move.in->micro_batch);
  }
  return {};
}

Fault fault_of_data(const Pipeline& pipeline, int stage, const Program& program) {
  OnHand on_hand;
  for (const Action& action : program) {
    if (const auto* forward = std::get_if<Forward>(&action)) {
      const int k = forward->micro_batch;
      if (stage > 0 && on_hand.activations_in.count(k) == 0) {
        return fmt::format("stage {} does F{} before it has activation {}", stage, k, k);
      }
      on_hand.forwards.insert(k);
    } else if (const auto* backward = std::get_if<Backward>(&action)) {
      const int k = backward->micro_batch;
      if (stage + 1 < pipeline.stages() && on_hand.gradients_in.count(k) == 0) {
        return fmt::format("stage {} does B{} before it has gradient {}", stage, k, k);
      }
      on_hand.backwards.insert(k);
    } else if (const auto* move = std::get_if<Move>(&action)) {
      if (Fault fault = fault_of_data_of_move(stage, *move, on_hand)) return fault;
    }
  }
  return {};
}

Fault fault_of_held(const Pipeline& pipeline, int stage, const Program& program) {
  const std::vector<int> held = passes_held(program);
  const int most = pipeline.held(stage);
  for (std::size_t at = 0; at < program.size(); ++at) {
    if (held[at] <= most) continue;
    return fmt::format("stage {} holds {} passes at {}, and has room for {}", stage, held[at],
                       text_of(program[at]), most);
  }
  return {};
}

using StageCheck = Fault (*)(const Pipeline& pipeline, int stage, const Program& program);

Fault first_of_stages(const Pipeline& pipeline, StageCheck check) {
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    const Program& program = pipeline.programs[static_cast<std::size_t>(stage)];
    if (Fault fault = check(pipeline, stage, program)) return fault;
  }
  return {};
}

}  // namespace

std::optional<std::string> find_fault(const Pipeline& pipeline) {
  if (pipeline.programs.empty() || pipeline.micro_batches < 1) {
    return "there is at least one stage and one micro-batch";
  }
  if (pipeline.most_held.size() != pipeline.programs.size()) {
    return fmt::format("{} stages have a program, and {} a bound of passes", pipeline.stages(),
                       pipeline.most_held.size());
  }
  const StageCheck sync = [](const Pipeline&, int stage, const Program& program) {
    return fault_of_sync(stage, program);
  };
  if (Fault fault = first_of_stages(pipeline, fault_of_passes)) return fault;
  if (Fault fault = first_of_stages(pipeline, sync)) return fault;
  if (Fault fault = fault_of_messages(pipeline)) return fault;
  if (Fault fault = first_of_stages(pipeline, fault_of_data)) return fault;
  if (Fault fault = first_of_stages(pipeline, fault_of_held)) return fault;
  const std::string circle = simulate(pipeline, {}).circle;
  return circle.empty() ? Fault{} : "it never ends: " + circle;
}

void validate(const Pipeline& pipeline) {
  if (const Fault fault = find_fault(pipeline)) {
    throw ContractError(fmt::format("pipeline '{}': {}", pipeline.schedule, *fault));
  }
}

}  // namespace ringlet::train
