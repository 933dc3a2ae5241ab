#include "app/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "app/replay/call_schedule.h"
#include "app/replay/walk_times.h"
#include "base/files/file_error.h"
#include "comm/schedule/check.h"

namespace ringlet::app::replay {

using train::TraceSpan;

namespace {

/// Clocks of several machines are known to less than this.
constexpr double kClocksApart = 1000;

class Replayer {
 public:
  explicit Replayer(const TracedCall& call)
      : call_(call), schedule_(schedule_of(call, Sides::arrived)), walked_(walk(call, schedule_)) {
    replay_.call = &call;
  }

  Replay run() {
    if (!walked_.ended && !call_.failed) fail_unmatched();
    const auto final = comm::contributions_of(
        schedule_, [this](const comm::Change& change) { raw_changes_.push_back(change); });
    find_parts(final);
    for (const WalkedMessage& message : walked_.messages) add_flight(message);
    add_touches();
    add_offers();
    for (const comm::Change& change : raw_changes_) add_changes(change);
    std::stable_sort(replay_.changes.begin(), replay_.changes.end(),
                     [](const auto& a, const auto& b) { return a.at_us < b.at_us; });
    for (const comm::Parts& parts : final) replay_.final.push_back(by_part(parts));
    replay_.steps = walked_.steps;
    replay_.totals = totals_of(schedule_);
    if (call_.failed) replay_.stuck = find_problem(schedule_of(call_, Sides::meant)).text;
    replay_.stays = std::move(walked_.stays);
    return std::move(replay_);
  }

 private:
  [[noreturn]] void fail_unmatched() const {
    throw FileError(fmt::format("{}: a message has no partner, so the trace is damaged: {}",
                                call_.where(), find_problem(schedule_).text));
  }

  const TraceSpan& span(int rank, std::size_t step) const {
    return call_.ranks[static_cast<std::size_t>(rank)].steps[step];
  }

  void find_parts(const std::vector<comm::Parts>& final) {
    std::set<std::int64_t> cuts{0, call_.bytes};
    const auto cut = [&cuts](std::int64_t begin, std::int64_t end) {
      if (begin >= 0 && begin < end) cuts.insert({begin, end});
    };
    for (const TracedRank& rank : call_.ranks) {
      for (const TraceSpan& step : rank.steps) {
        if (sends(step)) cut(step.out_at, step.out_at + step.bytes);
        if (receives(step)) cut(step.in_at, step.in_at + step.in_bytes);
        cut(step.begin, step.end);
      }
    }
    for (const comm::Change& change : raw_changes_) {
      for (const comm::Part& part : change.parts) cut(part.begin, part.end);
    }
    for (const comm::Parts& parts : final) {
      for (const comm::Part& part : parts) cut(part.begin, part.end);
    }
    for (auto begin = cuts.begin(); std::next(begin) != cuts.end(); ++begin) {
      replay_.parts.push_back({*begin, *std::next(begin)});
    }
  }

  /// The part that begins at or behind `at`.
  int part_at(std::int64_t at) const {
    const auto found = std::lower_bound(
        replay_.parts.begin(), replay_.parts.end(), at,
        [](const PartRange& part, std::int64_t begin) { return part.begin < begin; });
    return static_cast<int>(found - replay_.parts.begin());
  }
  int parts_in(std::int64_t begin, std::int64_t bytes) const {
    return bytes > 0 ? part_at(begin + bytes) - part_at(begin) : 0;
  }
  std::vector<comm::Counts> by_part(const comm::Parts& parts) const {
    std::vector<comm::Counts> counts;
    for (const comm::Part& part : parts) {
      counts.insert(counts.end(),
                    static_cast<std::size_t>(parts_in(part.begin, part.end - part.begin)),
                    part.counts);
    }
    return counts;
  }

  void add_flight(const WalkedMessage& message) {
    const TraceSpan& out = span(message.from, message.out_step);
    const TraceSpan& in = span(message.to, message.in_step);
    const double end = in.begin_us + in.duration_us;
    if (end + kClocksApart < out.begin_us) {
      throw FileError(fmt::format(
          "{}: times run backwards: rank {} has received by {:.3f} us what rank {} sends from "
          "{:.3f} us on",
          call_.where(), message.to, end, message.from, out.begin_us));
    }
    replay_.flights.push_back({.from = message.from,
                               .to = message.to,
                               .offered_us = std::min(out.begin_us, end),
                               .begin_us = std::min(std::max(out.begin_us, in.begin_us), end),
                               .end_us = end,
                               .step = message.step,
                               .bytes = out.bytes,
                               .out_part = out.bytes > 0 ? part_at(out.out_at) : 0,
                               .in_part = in.in_bytes > 0 ? part_at(in.in_at) : 0,
                               .parts = parts_in(in.in_at, in.in_bytes),
                               .adds = in.op != comm::name_of(comm::Combine::copy)});
    steps_of_receives_[{message.to, message.in_step}] = message.step;
  }

  void add_touches() {
    for (int rank = 0; rank < call_.size(); ++rank) {
      const auto& steps = call_.ranks[static_cast<std::size_t>(rank)].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Stay& stay = walked_.stay(rank, i);
        if (steps[i].begin >= 0 && stay.step > 0) add_touch(steps[i], stay);
      }
    }
  }

  /// What those send who hang in the end. Nobody has taken it.
  void add_offers() {
    for (const TracedRank& rank : call_.ranks) {
      if (rank.steps.empty() || !rank.steps.back().failed || !sends(rank.steps.back())) continue;
      const TraceSpan& out = rank.steps.back();
      const bool came = std::any_of(
          walked_.messages.begin(), walked_.messages.end(), [&](const WalkedMessage& message) {
            return message.from == out.rank && message.out_step + 1 == rank.steps.size();
          });
      if (came || out.bytes <= 0) continue;
      const int part = part_at(out.out_at);
      replay_.flights.push_back({.from = static_cast<int>(out.rank),
                                 .to = static_cast<int>(out.peer),
                                 .offered_us = out.begin_us,
                                 .begin_us = call_.end_us,
                                 .end_us = call_.end_us,
                                 .step = walked_.steps + 1,
                                 .bytes = out.bytes,
                                 .out_part = part,
                                 .in_part = part,
                                 .parts = parts_in(out.out_at, out.bytes),
                                 .arrives = false});
    }
  }

  /// What it reads flies first, then what it writes.
  void add_touch(const TraceSpan& span, const Stay& stay) {
    const auto other = [&](std::int64_t rank) { return rank != stay.rank && rank < call_.size(); };
    const bool writes_others = std::any_of(span.into.begin(), span.into.end(), other);
    const double middle = writes_others ? (stay.begin_us + stay.end_us) / 2 : stay.end_us;
    Flight flight{.offered_us = stay.begin_us,
                  .begin_us = stay.begin_us,
                  .end_us = middle,
                  .step = stay.step,
                  .bytes = span.end - span.begin,
                  .out_part = part_at(span.begin),
                  .in_part = part_at(span.begin),
                  .parts = parts_in(span.begin, span.end - span.begin),
                  .adds = span.name == "direct",
                  .half = writes_others ? 1 : 0};
    flight.to = stay.rank;
    for (const std::int64_t of : span.of) {
      if (!other(of)) continue;
      flight.from = static_cast<int>(of);
      replay_.flights.push_back(flight);
    }
    flight.from = stay.rank;
    flight.offered_us = flight.begin_us = middle;
    flight.end_us = stay.end_us;
    flight.adds = false;
    flight.half = 2;
    for (const std::int64_t into : span.into) {
      if (!other(into) || (span.name == "spread" && into == span.of[0])) continue;
      flight.to = static_cast<int>(into);
      replay_.flights.push_back(flight);
    }
  }

  void add_changes(const comm::Change& change) {
    const TraceSpan& by = span(change.rank, change.step);
    const Stay& stay = walked_.stay(change.rank, change.step);
    const auto received = steps_of_receives_.find({change.rank, change.step});
    const bool is_message = received != steps_of_receives_.end();
    const bool reads = (by.name == "read" || by.name == "spread") && !by.of.empty();
    StateChange made{.at_us = stay.end_us,
                     .step = is_message ? received->second : stay.step,
                     .rank = change.owner,
                     .by = change.rank,
                     .sender = static_cast<int>(is_message ? by.from
                                                : reads    ? by.of[0]
                                                           : -1),
                     .adds = is_message && by.op != comm::name_of(comm::Combine::copy)};
    for (const comm::Part& part : change.parts) {
      const int begin = part_at(part.begin), end = part_at(part.end);
      for (made.part = begin; made.part < end; ++made.part) {
        made.has = part.counts;
        replay_.changes.push_back(made);
      }
    }
  }

  const TracedCall& call_;
  comm::Schedule schedule_;
  Walked walked_;
  std::vector<comm::Change> raw_changes_;
  std::map<std::pair<int, std::size_t>, int> steps_of_receives_;
  Replay replay_;
};

}  // namespace

std::vector<double> Replay::waited_us() const {
  std::vector<double> waited(call->ranks.size());
  for (const Stay& stay : stays) {
    waited[static_cast<std::size_t>(stay.rank)] += stay.came_us - stay.begin_us;
  }
  return waited;
}

std::vector<std::vector<comm::Counts>> Replay::state_after(int step) const {
  std::vector<std::vector<comm::Counts>> state;
  for (std::size_t rank = 0; rank < call->ranks.size(); ++rank) {
    comm::Counts own(call->ranks.size());
    own[rank] = 1;
    state.emplace_back(parts.size(), own);
  }
  std::vector<const StateChange*> made;
  for (const StateChange& change : changes) {
    if (change.step <= step) made.push_back(&change);
  }
  std::stable_sort(made.begin(), made.end(),
                   [](const auto* a, const auto* b) { return a->step < b->step; });
  for (const StateChange* change : made) {
    state[static_cast<std::size_t>(change->rank)][static_cast<std::size_t>(change->part)] =
        change->has;
  }
  return state;
}

Replay replay_of(const TracedCall& call) { return Replayer(call).run(); }

}  // namespace ringlet::app::replay
