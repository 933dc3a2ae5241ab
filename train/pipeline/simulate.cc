#include "train/pipeline/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace ringlet::train {

namespace {

double number_at(const std::vector<double>& numbers, int index, double otherwise) {
  return numbers.empty() ? otherwise : numbers[static_cast<std::size_t>(index)];
}

void require_size(std::size_t size, int wanted, const char* name) {
  if (size != 0 && size != static_cast<std::size_t>(std::max(wanted, 0))) {
    throw ContractError(fmt::format("pipeline: {} has {} numbers, not {}", name, size, wanted));
  }
}

void require_sizes(const Pipeline& pipeline, const PipelineTimes& times) {
  const int stages = pipeline.stages();
  require_size(times.forward.size(), stages, "forward");
  require_size(times.backward.size(), stages, "backward");
  require_size(times.activation.size(), stages - 1, "activation");
  require_size(times.gradient.size(), stages - 1, "gradient");
  require_size(times.sync.size(), stages, "sync");
  require_size(times.update.size(), stages, "update");
  require_size(times.scales.size(), pipeline.micro_batches, "scales");
  require_size(times.pass_bytes.size(), stages, "pass_bytes");
  require_size(times.kept_bytes.size(), stages, "kept_bytes");
  for (const auto* passes : {&times.forwards, &times.backwards}) {
    require_size(passes->size(), stages, "passes");
    for (const auto& of_stage : *passes) {
      require_size(of_stage.size(), pipeline.micro_batches, "passes of a stage");
    }
  }
}

struct Transfer {
  double begin = 0;
  double end = 0;
};

/// Where one stage is in its program.
struct StageClock {
  std::size_t at = 0;             ///< the next action, or the Move that it is in
  int forward = -1;               ///< whose forward was the last pass to run; below 0: none's
  double again = 0;               ///< seconds of forwards that had run before
  double now = 0;                 ///< when it came to that
  std::optional<Transfer> out{};  ///< of that Move, once both sides have come
  std::optional<Transfer> in{};
};

class Simulator {
 public:
  Simulator(const Pipeline& pipeline, const PipelineTimes& times)
      : pipeline_(pipeline),
        times_(times),
        clocks_(pipeline.programs.size()),
        spans_(pipeline.programs.size()) {}

  Simulation run() {
    for (int stage = 0; stage < pipeline_.stages(); ++stage) {
      const double update = number_at(times_.update, stage, 0);
      if (update > 0) pass(stage, TimelineSpan::Kind::sync, TimelineSpan::kNone, update);
    }
    for (bool any = true; any;) {
      any = false;
      for (int stage = 0; stage < pipeline_.stages(); ++stage) {
        while (advance(stage)) any = true;
      }
    }
    Simulation result;
    for (const StageClock& clock : clocks_) result.seconds = std::max(result.seconds, clock.now);
    for (int stage = 0; stage < pipeline_.stages(); ++stage) {
      add_span(stage, TimelineSpan::Kind::wait, clocks_[index(stage)].now, result.seconds);
      result.stages.push_back(use_of(stage, result.seconds));
      const auto& spans = spans_[index(stage)];
      result.timeline.insert(result.timeline.end(), spans.begin(), spans.end());
    }
    result.circle = circle();
    rate(result);
    return result;
  }

 private:
  static std::size_t index(int stage) { return static_cast<std::size_t>(stage); }

  /// The action that a stage is at; null at the end, and for a stage that is not there.
  const Action* action_of(int stage) const {
    if (stage < 0 || stage >= pipeline_.stages()) return nullptr;
    const Program& program = pipeline_.programs[index(stage)];
    const std::size_t at = clocks_[index(stage)].at;
    return at < program.size() ? &program[at] : nullptr;
  }

  double scale(int micro_batch) const {
    const bool known = micro_batch >= 0 && micro_batch < pipeline_.micro_batches;
    return known ? number_at(times_.scales, micro_batch, 1) : 1;
  }

  /// Seconds of a pass, known one by one or alike.
  double seconds_of(const std::vector<std::vector<double>>& passes,
                    const std::vector<double>& alike, int stage, int micro_batch) const {
    const bool known = micro_batch >= 0 && micro_batch < pipeline_.micro_batches;
    if (passes.empty() || !known) return number_at(alike, stage, 0) * scale(micro_batch);
    return number_at(passes[index(stage)], micro_batch, 0);
  }

  /// Seconds of a message that `stage` sends.
  double seconds_of(int stage, const Message& out) const {
    const bool down = out.payload == Payload::activation;
    const int cut = down ? stage : stage - 1;
    if (cut < 0 || cut + 1 >= pipeline_.stages()) return 0;
    return number_at(down ? times_.activation : times_.gradient, cut, 0) * scale(out.micro_batch);
  }

  /// Runs the stage's next action, as far as it can. False where that is nothing.
  bool advance(int stage) {
    const Action* action = action_of(stage);
    if (action == nullptr) return false;
    if (const auto* move = std::get_if<Move>(action)) return advance(stage, *move);
    using Kind = TimelineSpan::Kind;
    if (const auto* forward = std::get_if<Forward>(action)) {
      run_forward(stage, forward->micro_batch);
      ++clocks_[index(stage)].at;
    } else if (const auto* backward = std::get_if<Backward>(action)) {
      StageClock& clock = clocks_[index(stage)];
      if (times_.recompute && clock.forward != backward->micro_batch) {
        const double begin = clock.now;
        run_forward(stage, backward->micro_batch);
        clock.again += clock.now - begin;
      }
      clock.forward = -1;
      pass(stage, Kind::backward, backward->micro_batch,
           seconds_of(times_.backwards, times_.backward, stage, backward->micro_batch));
      ++clock.at;
    } else {
      pass(stage, Kind::sync, TimelineSpan::kNone, number_at(times_.sync, stage, 0));
      ++clocks_[index(stage)].at;
    }
    return true;
  }

  void run_forward(int stage, int micro_batch) {
    pass(stage, TimelineSpan::Kind::forward, micro_batch,
         seconds_of(times_.forwards, times_.forward, stage, micro_batch));
    clocks_[index(stage)].forward = micro_batch;
  }

  void pass(int stage, TimelineSpan::Kind kind, int micro_batch, double seconds) {
    StageClock& clock = clocks_[index(stage)];
    spans_[index(stage)].push_back({stage, kind, micro_batch, clock.now, clock.now + seconds});
    clock.now += seconds;
  }

  bool advance(int stage, const Move& move) {
    StageClock& clock = clocks_[index(stage)];
    const bool sent = meet_receiver(stage, move);
    const bool received = meet_sender(stage, move);
    if ((move.out && !clock.out) || (move.in && !clock.in)) return sent || received;
    finish(stage, move);
    return true;
  }

  /// Starts the message out, if the receiver is there. True where it has just begun.
  bool meet_receiver(int stage, const Move& move) {
    if (!move.out || clocks_[index(stage)].out) return false;
    const Action* action = action_of(move.out->peer);
    const Move* other = action == nullptr ? nullptr : std::get_if<Move>(action);
    const Message wanted{stage, move.out->payload, move.out->micro_batch};
    if (other == nullptr || other->in != wanted) return false;
    StageClock& from = clocks_[index(stage)];
    StageClock& to = clocks_[index(move.out->peer)];
    const double begin = std::max(from.now, to.now);
    from.out = to.in = Transfer{begin, begin + seconds_of(stage, *move.out)};
    return true;
  }

  bool meet_sender(int stage, const Move& move) {
    if (!move.in || clocks_[index(stage)].in) return false;
    const Action* action = action_of(move.in->peer);
    const Move* other = action == nullptr ? nullptr : std::get_if<Move>(action);
    const bool for_this = other != nullptr && other->out && other->out->peer == stage;
    return for_this && meet_receiver(move.in->peer, *other);
  }

  /// A Move whose messages have both begun: its spans, and the waiting before and between them.
  void finish(int stage, const Move& move) {
    StageClock& clock = clocks_[index(stage)];
    std::vector<TimelineSpan> messages;
    const auto add = [&](const std::optional<Message>& side, const std::optional<Transfer>& went) {
      if (!side) return;
      const auto kind = side->payload == Payload::activation ? TimelineSpan::Kind::activation
                                                             : TimelineSpan::Kind::gradient;
      messages.push_back({stage, kind, side->micro_batch, went->begin, went->end, side->peer});
    };
    add(move.out, clock.out);
    add(move.in, clock.in);
    std::stable_sort(messages.begin(), messages.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (const TimelineSpan& message : messages) {
      add_span(stage, TimelineSpan::Kind::wait, clock.now, message.begin);
      spans_[index(stage)].push_back(message);
      clock.now = std::max(clock.now, message.end);
    }
    clock.out.reset();
    clock.in.reset();
    ++clock.at;
  }

  void add_span(int stage, TimelineSpan::Kind kind, double begin, double end) {
    if (begin < end) {
      spans_[index(stage)].push_back({stage, kind, TimelineSpan::kNone, begin, end});
    }
  }

  StageUse use_of(int stage, double seconds) const {
    StageUse use;
    use.again = clocks_[index(stage)].again;
    for (const TimelineSpan& span : spans_[index(stage)]) {
      using Kind = TimelineSpan::Kind;
      const double length = span.end - span.begin;
      if (span.kind == Kind::forward || span.kind == Kind::backward) use.busy += length;
      if (span.kind == Kind::sync) use.syncing += length;
      if (span.kind == Kind::wait) use.waiting += length;
    }
    use.moving = std::max(0.0, seconds - use.busy - use.syncing - use.waiting);
    for (const int held : passes_held(pipeline_.programs[index(stage)])) {
      use.peak_held = std::max(use.peak_held, held);
    }
    const auto bytes_of = [&](const std::vector<std::int64_t>& bytes) {
      return bytes.empty() ? 0 : bytes[index(stage)];
    };
    const std::int64_t pass = bytes_of(times_.pass_bytes);
    const int others = std::max(0, use.peak_held - 1);
    use.bytes_held =
        times_.recompute ? pass + others * bytes_of(times_.kept_bytes) : use.peak_held * pass;
    return use;
  }

  void rate(Simulation& result) const {
    double busy = 0, alone = 0;
    for (const StageUse& use : result.stages) {
      busy += use.busy;
      alone += use.busy - use.again + use.syncing;
    }
    if (result.seconds <= 0) return;
    result.bubble = 1 - busy / (result.seconds * pipeline_.stages());
    result.speedup = alone / result.seconds;
  }

  /// What a stage that is in a Move waits for.
  struct Wait {
    int peer = 0;
    std::string text{};  ///< "sends activation 1 to stage 1"
  };

  /// Of a stage that does not come to its end, and so is in a Move.
  Wait wait_of(int stage) const {
    const Move& move = std::get<Move>(*action_of(stage));
    if (move.out && !clocks_[index(stage)].out) return {move.out->peer, sending(*move.out)};
    return {move.in->peer, receiving(*move.in)};
  }

  std::string circle() const {
    int stage = 0;
    while (stage < pipeline_.stages() && action_of(stage) == nullptr) ++stage;
    if (stage == pipeline_.stages()) return {};
    std::vector<int> path;
    while (action_of(stage) != nullptr &&
           std::find(path.begin(), path.end(), stage) == path.end()) {
      path.push_back(stage);
      stage = wait_of(stage).peer;
    }
    if (action_of(stage) != nullptr) {  // what leads to the circle is no part of it
      path.erase(path.begin(), std::find(path.begin(), path.end(), stage));
      std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    }
    std::string text = fmt::format("stage {}", path.front());
    for (const int waiting : path) {
      text += (waiting == path.front() ? " " : ", which ") + wait_of(waiting).text;
    }
    return action_of(stage) != nullptr ? text : text + ", which has ended";
  }

  const Pipeline& pipeline_;
  const PipelineTimes& times_;
  std::vector<StageClock> clocks_;
  std::vector<std::vector<TimelineSpan>> spans_;
};

}  // namespace

Simulation simulate(const Pipeline& pipeline, const PipelineTimes& times) {
  require_sizes(pipeline, times);
  return Simulator(pipeline, times).run();
}

}  // namespace ringlet::train
