#include "app/replay/call_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/files/file_error.h"

namespace ringlet::app::replay {

using train::TraceSpan;

namespace {

comm::Combine combine_of(const std::string& op) {
  for (const comm::Combine combine : {comm::Combine::add, comm::Combine::min, comm::Combine::max}) {
    if (op == comm::name_of(combine)) return combine;
  }
  return comm::Combine::copy;
}

class Builder {
 public:
  Builder(const TracedCall& call, Sides sides) : call_(call), sides_(sides) {
    const auto any = [&call](const char* name) {
      return std::any_of(call.ranks.begin(), call.ranks.end(), [name](const TracedRank& rank) {
        return std::any_of(rank.steps.begin(), rank.steps.end(),
                           [name](const TraceSpan& step) { return step.name == name; });
      });
    };
    has_windows_ = any("copy");
    reads_parts_ = any("read");
    for (const TracedRank& rank : call.ranks) {
      for (const TraceSpan& step : rank.steps) {
        if (receives(step) && !step.failed) ++came_[{step.from, step.rank}];
      }
    }
  }

  comm::Schedule build() {
    for (int rank = 0; rank < call_.size(); ++rank) {
      comm::RankSchedule& into = schedule_.ranks.emplace_back();
      into.data = data_of(call_, rank);
      into.shown = {has_windows_ ? window_of(rank) : into.data};
      for (const TraceSpan& step : call_.ranks[static_cast<std::size_t>(rank)].steps) {
        add(into, step);
      }
    }
    return std::move(schedule_);
  }

 private:
  comm::Range window_of(int rank) const {
    comm::Range window = data_of(call_, rank);
    window.begin += data_of(call_, call_.size()).begin;
    return window;
  }

  [[noreturn]] void fail(const TraceSpan& step, const std::string& what) const {
    throw FileError(
        fmt::format("{}: a step '{}' of rank {} {}", call_.where(), step.name, step.rank, what));
  }
  [[noreturn]] void fail_damaged(const TraceSpan& step) const {
    fail(step, "does not fit to its call; the trace is damaged");
  }

  /// A piece of the data at `at`, as it lies in `data`.
  comm::Range piece(const TraceSpan& step, const comm::Range& data, std::int64_t at,
                    std::int64_t bytes) const {
    if (bytes == 0) return {data.begin, 0};
    if (at < 0 && bytes > 0) {
      fail(step,
           "works on memory beside the data, such as a buffer of the strategy's own; whose "
           "numbers these are is not in the trace");
    }
    if (bytes < 0 || at > call_.bytes || bytes > call_.bytes - at) fail_damaged(step);
    return {data.begin + at, bytes};
  }

  void add(comm::RankSchedule& rank, const TraceSpan& span) {
    comm::Step step;
    comm::Addresses addresses;
    if (span.name == "meet") {
      step = {.to = 0, .kind = comm::StepKind::meeting};
    } else if (span.name == "copy" || span.name == "direct" || span.name == "read" ||
               span.name == "spread") {
      add_touch(rank, span, step);
    } else {
      add_exchange(rank, span, step, addresses);
    }
    rank.steps.push_back(step);
    rank.addresses.push_back(addresses);
  }

  void add_touch(comm::RankSchedule& rank, const TraceSpan& span, comm::Step& step) const {
    const std::int64_t bytes = span.end - span.begin;
    if (bytes == 0 || (span.failed && sides_ == Sides::arrived)) return;  // it changes nothing
    const comm::Range mine = piece(span, rank.data, span.begin, bytes);
    comm::Touch touch{.begin = span.begin, .mine = mine};
    if (span.name == "copy") {
      touch.kind = comm::Touch::Kind::copy;
      touch.from = mine;
      touch.mine.begin += rank.shown[0].begin - rank.data.begin;
    } else if (span.name == "read" || span.name == "spread") {
      if (span.of.size() != 1 || span.of[0] < 0 || span.of[0] >= call_.size()) fail_damaged(span);
      touch.kind = span.name == "read" ? comm::Touch::Kind::read : comm::Touch::Kind::spread;
      touch.of = static_cast<int>(span.of[0]);
    } else if (span.into.size() > 1) {
      touch.kind = comm::Touch::Kind::reduce_for_all;
    } else if (span.into.size() == 1 && span.into[0] != span.rank) {
      if (span.into[0] < 0 || span.into[0] >= call_.size()) fail_damaged(span);
      touch.kind = comm::Touch::Kind::reduce_to;
      touch.of = static_cast<int>(span.into[0]);
    } else {
      touch.kind = reads_parts_ ? comm::Touch::Kind::reduce_part : comm::Touch::Kind::reduce_into;
    }
    step = {.to = static_cast<std::int32_t>(rank.touches.size()), .kind = comm::StepKind::touch};
    rank.touches.push_back(touch);
  }

  void add_exchange(const comm::RankSchedule& rank, const TraceSpan& span, comm::Step& step,
                    comm::Addresses& addresses) {
    const auto is_peer = [&](std::int64_t other) {
      return 0 <= other && other < call_.size() && other != span.rank;
    };
    if (sends(span)) {
      if (!is_peer(span.peer)) fail_damaged(span);
      const std::int64_t number = sent_[{span.rank, span.peer}]++;
      if (!call_.failed || sides_ == Sides::meant || number < came_[{span.rank, span.peer}]) {
        const comm::Range out =
            piece(span, rank.data, span.out_at, std::max<std::int64_t>(0, span.bytes));
        step.to = static_cast<std::int32_t>(span.peer);
        step.out = schedule_.number_of(out.bytes);
        addresses.out = out.begin;
      }
    }
    if (receives(span) && (!span.failed || sides_ == Sides::meant)) {
      if (!is_peer(span.from)) fail_damaged(span);
      const comm::Range in = piece(span, rank.data, span.in_at, span.in_bytes);
      step.from = static_cast<std::int32_t>(span.from);
      step.in = schedule_.number_of(in.bytes);
      step.combine = combine_of(span.op);
      addresses.in = in.begin;
    }
  }

  using Pair = std::pair<std::int64_t, std::int64_t>;  // from, to

  const TracedCall& call_;
  Sides sides_;
  bool has_windows_ = false;
  bool reads_parts_ = false;  // parts are reduced in windows, and read from there
  std::map<Pair, std::int64_t> came_, sent_;
  comm::Schedule schedule_;
};

}  // namespace

comm::Schedule schedule_of(const TracedCall& call, Sides sides) {
  return Builder(call, sides).build();
}

comm::Range data_of(const TracedCall& call, int rank) {
  return {rank * (call.bytes + 1), call.bytes};  // a byte apart: neighbours do not touch
}

}  // namespace ringlet::app::replay
