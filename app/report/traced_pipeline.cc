#include "app/report/traced_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/files/file_error.h"
#include "train/telemetry/trace_reader.h"

namespace ringlet::app::report {

namespace {

using train::Simulation;
using train::StageUse;
using train::TimelineSpan;
using Kind = TimelineSpan::Kind;

struct TracedAction {
  train::Action action;
  double begin = 0, end = 0;  // seconds
};
using RankStep = std::vector<TracedAction>;

/// The stage of a rank that moves so: activations go up by one, gradients down.
int stage_of(const train::Move& move) {
  const bool sends = move.out.has_value();
  const train::Message& message = sends ? *move.out : *move.in;
  const bool activation = message.payload == train::Payload::activation;
  return message.peer + (activation == sends ? -1 : 1);
}

/// All steps of a rank, and its stage.
struct TracedRank {
  int rank = 0;
  int stage = 0;  // 0 where there are no moves
  std::vector<RankStep> steps{};
};

/// A stage's part of a step, on the clock of a simulation.
class StagePlayer {
 public:
  /// When the other side of a message came to its Move, in the trace's seconds.
  using Came = std::function<double(const train::Message& message, bool sends)>;

  StagePlayer(int stage, double origin, Simulation& played, Came came)
      : stage_(stage), origin_(origin), played_(played), came_(std::move(came)) {}

  StageUse play(const RankStep& step) {
    train::Program program;
    for (const TracedAction& traced : step) {
      program.push_back(traced.action);
      const double begin = traced.begin - origin_, end = std::max(begin, traced.end - origin_);
      if (const auto* move = std::get_if<train::Move>(&traced.action)) {
        play_move(*move, begin, end);
      } else {
        play_pass(traced.action, begin, end);
      }
      now_ = std::max(now_, end);
    }
    wait_until(played_.seconds);
    use_.waiting = played_.seconds - use_.busy - use_.moving - use_.syncing;
    for (const int held : passes_held(program)) use_.peak_held = std::max(use_.peak_held, held);
    return use_;
  }

 private:
  void add(Kind kind, double begin, double end, int micro_batch = TimelineSpan::kNone,
           int peer = TimelineSpan::kNone) {
    constexpr double kNothing = 1e-10;  // less than a trace tells
    if (end - begin > kNothing)
      played_.timeline.push_back({stage_, kind, micro_batch, begin, end, peer});
  }

  void wait_until(double begin) {
    add(Kind::wait, now_, begin);
    now_ = std::max(now_, begin);
  }

  void play_pass(const train::Action& action, double begin, double end) {
    wait_until(begin);
    const auto* forward = std::get_if<train::Forward>(&action);
    const auto* backward = std::get_if<train::Backward>(&action);
    if (forward != nullptr) {
      add(Kind::forward, begin, end, forward->micro_batch);
    } else if (backward != nullptr) {
      add(Kind::backward, begin, end, backward->micro_batch);
    } else {
      add(Kind::sync, begin, end);
    }
    const bool computes = forward != nullptr || backward != nullptr;
    (computes ? use_.busy : use_.syncing) += end - begin;
  }

  /// A message cannot go before both have come; until the first one goes, the stage waits.
  void play_move(const train::Move& move, double begin, double end) {
    const auto goes = [&](const std::optional<train::Message>& message, bool sends) {
      return message ? std::clamp(came_(*message, sends) - origin_, begin, end) : end;
    };
    const double out = goes(move.out, true), in = goes(move.in, false);
    wait_until(std::min(out, in));
    use_.moving += end - std::min(out, in);
    if (move.out) add_message(*move.out, out, end);
    if (move.in) add_message(*move.in, in, end);
  }

  void add_message(const train::Message& message, double begin, double end) {
    const bool activation = message.payload == train::Payload::activation;
    add(activation ? Kind::activation : Kind::gradient, begin, end, message.micro_batch,
        message.peer);
  }

  int stage_;
  double origin_;
  Simulation& played_;
  Came came_;
  StageUse use_{};
  double now_ = 0;
};

class PipelineReader {
 public:
  explicit PipelineReader(std::string source) : source_(std::move(source)) {}

  void add(const train::TraceSpan& span) {
    if (span.category != train::kTracedActions || span.failed) return;
    const auto action = train::action_of(span.name);
    if (!action) fail(fmt::format("'{}' is no action of a pipeline", span.name));
    const double begin = 1e-6 * span.begin_us;
    actions_[static_cast<int>(span.rank)].push_back(
        {*action, begin, begin + 1e-6 * span.duration_us});
  }

  TracedPipeline pipeline(std::int64_t left_out) {
    if (actions_.empty()) {
      fail("no step of a pipeline is in it; trace a run that is cut into stages");
    }
    for (auto& [rank, actions] : actions_) add_rank(rank, std::move(actions));
    TracedPipeline made{.left_out = left_out};
    choose_ranks(made);
    std::size_t steps = stages_.front().steps.size();
    for (const TracedRank& stage : stages_) steps = std::min(steps, stage.steps.size());
    if (steps == 0) fail("no step of a pipeline is whole in it; trace a longer run");
    for (std::size_t step = 0; step < steps; ++step) made.steps.push_back(play(step));
    for (const TracedAction& traced : stages_.front().steps.front()) {
      made.micro_batches += std::holds_alternative<train::Forward>(traced.action) ? 1 : 0;
    }
    return made;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(source_ + ": " + what); }

  void add_rank(int rank, RankStep actions) {
    std::stable_sort(actions.begin(), actions.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    TracedRank traced{.rank = rank};
    RankStep step;
    for (const TracedAction& action : actions) {
      const bool ends = std::holds_alternative<train::Sync>(action.action);
      if (const auto* move = std::get_if<train::Move>(&action.action)) {
        traced.stage = stage_of(*move);
        if (move->out) last_peer_ = std::max(last_peer_, move->out->peer);
        if (move->in) last_peer_ = std::max(last_peer_, move->in->peer);
      }
      step.push_back(action);
      if (ends) traced.steps.push_back(std::exchange(step, {}));
    }
    ranks_.push_back(std::move(traced));
  }

  /// The lowest rank of each stage.
  void choose_ranks(TracedPipeline& made) {
    std::map<int, int> counts;
    for (TracedRank& rank : ranks_) {  // ascending
      if (counts[rank.stage]++ == 0) stages_.push_back(std::move(rank));
    }
    std::sort(stages_.begin(), stages_.end(),
              [](const auto& a, const auto& b) { return a.stage < b.stage; });
    made.replicas = counts.begin()->second;
    for (const TracedRank& stage : stages_) made.ranks.push_back(stage.rank);
    require_stages_up_to(std::max(last_peer_, stages_.back().stage));
  }

  /// The first stage that nobody is of is named.
  void require_stages_up_to(int last) const {
    int missing = 0;
    while (missing < static_cast<int>(stages_.size()) &&
           stages_[static_cast<std::size_t>(missing)].stage == missing) {
      ++missing;
    }
    if (missing > last) return;
    fail(fmt::format(
        "stage {} is not in it; put the traces of all processes together with ringlet trace merge",
        missing));
  }

  /// When the other side of a message came to its Move.
  double came(std::size_t step, int stage, const train::Message& message, bool sends) const {
    const RankStep& peer = stages_.at(static_cast<std::size_t>(message.peer)).steps[step];
    for (const TracedAction& traced : peer) {
      const auto* move = std::get_if<train::Move>(&traced.action);
      if (move == nullptr) continue;
      const auto& side = sends ? move->in : move->out;
      if (side && side->peer == stage && side->payload == message.payload &&
          side->micro_batch == message.micro_batch) {
        return traced.begin;
      }
    }
    fail(fmt::format("stage {} {} in step {}, and stage {} has no such message", stage,
                     sends ? sending(message) : receiving(message), step, message.peer));
  }

  Simulation play(std::size_t step) const {
    double begin = stages_.front().steps[step].front().begin, end = begin;
    for (const TracedRank& stage : stages_) {
      begin = std::min(begin, stage.steps[step].front().begin);
      for (const TracedAction& traced : stage.steps[step]) end = std::max(end, traced.end);
    }
    Simulation played{.seconds = end - begin};
    double busy = 0, alone = 0;
    for (const TracedRank& stage : stages_) {
      StagePlayer player(stage.stage, begin, played,
                         [&, own = stage.stage](const train::Message& message, bool sends) {
                           return came(step, own, message, sends);
                         });
      const StageUse use = player.play(stage.steps[step]);
      busy += use.busy;
      alone += use.busy + use.syncing;
      played.stages.push_back(use);
    }
    if (played.seconds > 0) {
      played.bubble = 1 - busy / (played.seconds * static_cast<double>(stages_.size()));
      played.speedup = alone / played.seconds;
    }
    return played;
  }

  std::string source_;
  std::map<int, RankStep> actions_{};  // by rank
  std::vector<TracedRank> ranks_{}, stages_{};
  int last_peer_ = 0;  // the highest stage that a message names
};

}  // namespace

int TracedPipeline::typical_step() const {
  constexpr int kWarmUp = 2;
  const int count = static_cast<int>(steps.size());
  std::vector<int> order(static_cast<std::size_t>(count > kWarmUp ? count - kWarmUp : count));
  std::iota(order.begin(), order.end(), count > kWarmUp ? kWarmUp : 0);
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::nth_element(order.begin(), middle, order.end(), [&](int a, int b) {
    const double one = steps[static_cast<std::size_t>(a)].seconds;
    const double other = steps[static_cast<std::size_t>(b)].seconds;
    return one != other ? one < other : a < b;
  });
  return *middle;
}

TracedPipeline parse_pipeline(std::string_view text, const std::string& source) {
  PipelineReader reader(source);
  const auto names =
      train::parse_trace(text, source, [&](const train::TraceSpan& span) { reader.add(span); });
  return reader.pipeline(names.left_out);
}

TracedPipeline read_pipeline(const std::filesystem::path& file) {
  PipelineReader reader(file.string());
  const auto names =
      train::read_trace(file, [&](const train::TraceSpan& span) { reader.add(span); });
  return reader.pipeline(names.left_out);
}

}  // namespace ringlet::app::report
