#include "app/replay/traced_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "app/replay/call_groups.h"
#include "base/files/file_error.h"
#include "base/one_line.h"

namespace ringlet::app::replay {

namespace fs = std::filesystem;
using train::TraceSpan;

namespace {

/// What is longer is slow in any browser. A usual trace that is full has some 130 MB.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;
/// Spans are written to the nanosecond.
constexpr double kRounding = 0.002;

double end_of(const TraceSpan& span) { return span.begin_us + span.duration_us; }

/// What tells calls from others. Groups that follow each other in a program count anew, so a rank
/// may come to a number several times.
struct CallKey {
  std::string axis{};
  std::int64_t ranks = 0, number = 0;
  int which = 0;
  auto operator<=>(const CallKey&) const = default;
};

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(on_one_line(file.string())) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(file, error);
    if (!error && bytes > kMostBytes) {
      fail(fmt::format("has {} MB, and a replay takes up to {}; trace fewer steps or sizes",
                       bytes >> 20, kMostBytes >> 20));
    }
    names_ = train::read_trace(file, [this](const TraceSpan& span) { take(span); });
  }

  TracedRun run() {
    if (names_.lacks_calls) {
      fail(
          "is of an earlier version, which did not write to which call an exchange belongs; "
          "trace it again");
    }
    sort_spans();
    for (auto& [stream, wholes] : wholes_) sort_into_calls(stream, wholes);
    TracedRun run;
    for (auto& [key, came] : came_) {
      for (TracedCall& call : calls_of(std::move(came), static_cast<int>(key.ranks))) {
        const bool has_steps = std::any_of(call.ranks.begin(), call.ranks.end(),
                                           [](const auto& rank) { return !rank.steps.empty(); });
        if (!has_steps) continue;  // one rank, or a library's own
        if (is_whole(key, call)) {
          finish(call);
          run.calls.push_back(std::move(call));
        } else {
          ++run.left_out;
        }
      }
    }
    if (run.calls.empty()) {
      fail(
          "has no all-reduce whose messages are in it; 'ringlet bench all-reduce --trace FILE' "
          "writes some, as do 'ringlet train --replicas 2 --trace FILE' and others");
    }
    std::stable_sort(run.calls.begin(), run.calls.end(),
                     [](const auto& a, const auto& b) { return a.begin_us < b.begin_us; });
    for (auto& [rank, layers] : layers_) add_backward(rank, layers, run.backward);
    return run;
  }

 private:
  using Stream = std::pair<std::int64_t, std::int64_t>;  // rank and stream
  struct Layer {
    double begin_us, end_us;
    bool backward;
  };

  [[noreturn]] void fail(const std::string& what) const { throw FileError(file_ + " " + what); }

  void take(const TraceSpan& span) {
    ranks_.insert(span.rank);
    if (span.category == "collective" && !span.reduce.empty()) {
      require_rank(span);
      wholes_[{span.rank, span.stream}].push_back(span);
    } else if (span.category == "exchange" && span.call > 0) {
      steps_[{span.rank, span.stream}].push_back(span);
    } else if (span.category == "layer") {
      layers_[span.rank].push_back(
          {span.begin_us, end_of(span), span.name.starts_with("backward ")});
    }
  }

  void require_rank(const TraceSpan& span) const {
    if (span.ranks > kMostRanks) {
      fail(fmt::format("is of {} ranks, and a replay shows up to {}", span.ranks, kMostRanks));
    }
    if (span.rank >= 0 && span.ranks > 0) return;
    fail(fmt::format("has rank {} in a call of {} ranks; it is damaged", span.rank, span.ranks));
  }

  void sort_spans() {
    for (auto* spans : {&wholes_, &steps_}) {
      for (auto& [stream, of_stream] : *spans) {
        std::stable_sort(of_stream.begin(), of_stream.end(), [](const auto& a, const auto& b) {
          return std::pair(a.begin_us, end_of(a)) < std::pair(b.begin_us, end_of(b));
        });
      }
    }
  }

  void sort_into_calls(const Stream& stream, std::vector<TraceSpan>& wholes) {
    const std::vector<TraceSpan>& steps = steps_[stream];
    auto step = steps.begin();
    std::map<CallKey, int> seen;
    for (TraceSpan& whole : wholes) {
      CallKey key{whole.axis, whole.ranks, whole.call};
      key.which = seen[key]++;
      TracedRank& rank = came_[key][stream.first];
      while (step != steps.end() && step->begin_us < whole.begin_us) ++step;
      for (; step != steps.end() && end_of(*step) <= end_of(whole) + kRounding; ++step) {
        if (step->call == whole.call && step->axis == whole.axis) rank.steps.push_back(*step);
      }
      rank.whole = std::move(whole);
    }
  }

  /// Whether all ranks are there. What failed need not be complete.
  bool is_whole(const CallKey& key, const TracedCall& call) const {
    bool failed = false;
    int missing = -1;
    for (int rank = 0; rank < call.size(); ++rank) {
      const TracedRank& of_rank = call.ranks[static_cast<std::size_t>(rank)];
      if (!of_rank.whole) missing = rank;
      failed = failed || (of_rank.whole && of_rank.whole->failed);
      if (call.members.empty() && !of_rank.whole && !ranks_.contains(rank)) {
        fail(
            fmt::format("lacks rank {} of {}; if each process wrote its own, 'ringlet trace "
                        "merge' makes one of all",
                        rank, call.size()));
      }
    }
    if (call.size() > key.ranks) {
      fail(fmt::format("has rank {} in a call of {} ranks; it is damaged", call.members.back(),
                       key.ranks));
    }
    if (missing >= 0 && !failed && names_.left_out == 0) {
      fail(fmt::format("lacks rank {} in call {}; it is damaged", missing, key.number));
    }
    return failed || missing < 0;
  }

  /// From each first layer that goes back to the last one before layers go forward again.
  static void add_backward(std::int64_t rank, std::vector<Layer>& layers,
                           std::vector<Backward>& into) {
    std::stable_sort(layers.begin(), layers.end(),
                     [](const Layer& a, const Layer& b) { return a.begin_us < b.begin_us; });
    bool goes_on = false;
    for (const Layer& layer : layers) {
      if (layer.backward && goes_on)
        into.back().end_us = std::max(into.back().end_us, layer.end_us);
      if (layer.backward && !goes_on) into.push_back({rank, layer.begin_us, layer.end_us});
      goes_on = layer.backward;
    }
  }

  void finish(TracedCall& call) const {
    call.begin_us = std::numeric_limits<double>::infinity();
    call.end_us = -call.begin_us;
    for (const TracedRank& rank : call.ranks) {
      if (!rank.whole) continue;
      const TraceSpan& whole = *rank.whole;
      call.file = file_;
      call.name = whole.name;
      call.number = whole.call;
      call.bytes = std::max(call.bytes, whole.bytes);
      call.type = whole.type;
      call.op = whole.reduce;
      call.failed = call.failed || whole.failed;
      call.begin_us = std::min(call.begin_us, whole.begin_us);
      call.end_us = std::max(call.end_us, end_of(whole));
    }
    for (const TracedRank& rank : call.ranks) require_forward(call, rank);
  }

  void require_forward(const TracedCall& call, const TracedRank& rank) const {
    for (std::size_t i = 1; i < rank.steps.size(); ++i) {
      if (rank.steps[i].begin_us + kRounding >= end_of(rank.steps[i - 1])) continue;
      fail(
          fmt::format("has times that run backwards: in {}, rank {} begins its step {} before "
                      "step {} has ended",
                      call.text(), rank.steps[i].rank, i + 1, i));
    }
  }

  std::string file_;
  train::TraceNames names_;
  std::set<std::int64_t> ranks_;  // that have spans
  std::map<Stream, std::vector<TraceSpan>> wholes_, steps_;
  std::map<std::int64_t, std::vector<Layer>> layers_;  // of each rank
  std::map<CallKey, Came> came_;
};

}  // namespace

std::string TracedCall::text() const {
  std::string text = fmt::format("call {}, '{}'", number, on_one_line(name));
  if (!members.empty()) text += fmt::format(" of the world's ranks {}", fmt::join(members, ", "));
  return text;
}

TracedRun read_calls(const fs::path& file) { return Reader(file).run(); }

}  // namespace ringlet::app::replay
