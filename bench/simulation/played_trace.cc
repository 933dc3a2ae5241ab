#include "bench/simulation/played_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/all_reduce/sizes.h"
#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"

namespace ringlet::bench {

namespace {

constexpr auto kOp = ReduceOp::sum;

/// A rank's step as a span without its times.
class StepText {
 public:
  StepText(const comm::Schedule& schedule, int rank, std::int64_t call)
      : schedule_(schedule), own_(schedule.of(rank)), rank_(rank) {
    details_.call = call;
  }

  /// Adds it to `tracer`; nothing of what the program does beside the collective.
  void add(Tracer& tracer, std::size_t number, Span span) {
    const comm::Step& step = own_.steps[number];
    ExchangeDetails details = details_;
    const char* name = "meet";
    if (step.kind == comm::StepKind::exchange) {
      name = describe(step, own_.addresses[number], span, details);
    } else if (step.kind == comm::StepKind::touch) {
      const comm::Touch& touch = own_.touch(step);
      if (touch.kind == comm::Touch::Kind::use) return;
      name = describe(touch, span, details);
    }
    fmt::format_to_n(span.name.data(), span.name.size() - 1, "{}", name);
    span.category = "exchange";
    tracer.add(span, &details);
  }

 private:
  /// From the beginning of the rank's data; -1 for other memory.
  std::int64_t offset_of(const comm::Range& range) const {
    const bool inside = own_.data.begin <= range.begin && range.end() <= own_.data.end();
    return inside && range.bytes > 0 ? range.begin - own_.data.begin : -1;
  }

  const char* describe(const comm::Step& step, const comm::Addresses& at, Span& span,
                       ExchangeDetails& details) const {
    const bool sends = step.to != comm::kNobody, receives = step.from != comm::kNobody;
    span.peer = sends ? step.to : step.from;
    span.bytes = sends ? schedule_.out_bytes(step) : schedule_.in_bytes(step);
    if (sends) details.out_at = offset_of({at.out, span.bytes});
    if (receives) {
      details.from = step.from;
      details.in_bytes = schedule_.in_bytes(step);
      details.in_at = offset_of({at.in, details.in_bytes});
      details.op = name_of(step.combine);
    }
    return !receives ? "send" : sends ? "exchange" : "receive";
  }

  const char* describe(const comm::Touch& touch, Span& span, ExchangeDetails& details) const {
    using Kind = comm::Touch::Kind;
    const RankRange own{rank_, rank_ + 1}, all{0, schedule_.size()};
    span.bytes = moved_bytes(touch, rank_, schedule_.size());
    comm::Range data = touch.kind == Kind::copy ? touch.from : touch.mine;
    const bool into_all = touch.kind == Kind::reduce_for_all || touch.kind == Kind::spread;
    const bool into_one = touch.kind == Kind::reduce_to;
    if (into_all || into_one) data.begin = own_.shown.back().begin + touch.begin;
    details.begin = offset_of(data);
    if (details.begin >= 0) details.end = details.begin + data.bytes;
    details.into = into_all ? all : into_one ? RankRange{touch.of, touch.of + 1} : own;
    details.of = all;
    if (touch.kind == Kind::copy) {
      details.of = own;
      return "copy";
    }
    if (touch.kind == Kind::read) {
      details.of = {touch.of, touch.of + 1};
      span.peer = touch.of;
      return "read";
    }
    if (touch.kind == Kind::spread) {
      details.of = {touch.of, touch.of + 1};
      return "spread";
    }
    details.op = name_of(comm::combine_of(kOp));
    return "direct";
  }

  const comm::Schedule& schedule_;
  const comm::RankSchedule& own_;
  int rank_;
  ExchangeDetails details_{};
};

/// The timeline of the ranks of one layout.
class Timeline {
 public:
  explicit Timeline(const Layout& layout)
      : compute_(static_cast<std::size_t>(layout.ranks())), sums_(compute_.size()) {}

  int calls() const { return calls_; }

  void add_call(const comm::Strategy& strategy, const comm::Network& network, std::int64_t bytes) {
    const std::string name = fmt::format("{} {}", strategy.name, size_text(bytes));
    go_on_behind(play_call(name, strategy, network, bytes, std::vector<double>(sums_.size())));
  }

  /// Each rank begins a sum when its backward is as far and its sum before has ended.
  void add_step(const comm::Strategy& strategy, const comm::Network& network, const StepSpec& spec,
                const StepPlan& plan) {
    const std::vector<double> compute = compute_seconds(spec, network);
    for (std::size_t rank = 0; rank < compute.size(); ++rank) {
      const std::int64_t turn = at(compute[rank] * plan.forward);
      compute_[rank].add("forward " + spec.model, "layer", now_ns_, turn);
      compute_[rank].add("backward " + spec.model, "layer", turn, at(compute[rank]));
    }
    const std::string size = spec.bucket_kb < 0 ? "" : fmt::format(" of {} KiB", spec.bucket_kb);
    std::vector<double> ends(compute.size());
    for (std::size_t i = 0; i < plan.sums.size(); ++i) {
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        ends[rank] = std::max(ends[rank], compute[rank] * plan.sums[i].ready);
      }
      ends = play_call(fmt::format("{} bucket {}{}", strategy.name, i, size), strategy, network,
                       plan.sums[i].bytes, ends);
    }
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      ends[rank] = std::max(ends[rank], compute[rank]);
    }
    go_on_behind(ends);
  }

  void add_to(train::TraceWriter& trace) {
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      if (!compute_[rank].spans().empty()) {
        trace.add(static_cast<int>(rank), 1, "compute", std::move(compute_[rank]));
      }
      trace.add(static_cast<int>(rank), 2, "communication", std::move(sums_[rank]));
    }
  }

 private:
  std::int64_t at(double seconds) const { return now_ns_ + std::llround(1e9 * seconds); }

  /// With a tenth of its time between.
  void go_on_behind(const std::vector<double>& ends) {
    now_ns_ = at(1.1 * *std::max_element(ends.begin(), ends.end()));
  }

  /// `begins`: of each rank. Returns when each ends.
  std::vector<double> play_call(const std::string& name, const comm::Strategy& strategy,
                                const comm::Network& network, std::int64_t bytes,
                                const std::vector<double>& begins) {
    const comm::Schedule schedule =
        record(strategy.make, network, {.count = bytes / size_of(DType::f32), .addresses = true});
    std::vector<std::vector<std::pair<double, double>>> times(sums_.size());
    for (int rank = 0; rank < schedule.size(); ++rank) {
      times[static_cast<std::size_t>(rank)].resize(schedule.of(rank).steps.size());
    }
    const auto note = [&times](const comm::PlayedStep& step) {
      times[static_cast<std::size_t>(step.rank)][step.step] = {step.begin_s, step.end_s};
    };
    std::vector<double> ends = play(schedule, network, {.step = note}, begins);
    ++calls_;
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      StepText text(schedule, static_cast<int>(rank), calls_);
      for (std::size_t step = 0; step < times[rank].size(); ++step) {
        const auto [begin, end] = times[rank][step];
        text.add(sums_[rank], step, {.begin_ns = at(begin), .end_ns = at(end)});
      }
      const ExchangeDetails details{.call = calls_,
                                    .type = name_of(DType::f32),
                                    .reduce = name_of(kOp),
                                    .ranks = schedule.size()};
      Span span{.category = "collective",
                .begin_ns = at(begins[rank]),
                .end_ns = at(ends[rank]),
                .bytes = schedule.of(static_cast<int>(rank)).data.bytes};
      fmt::format_to_n(span.name.data(), span.name.size() - 1, "{}", name);
      sums_[rank].add(span, &details);
    }
    return ends;
  }

  std::vector<Tracer> compute_, sums_;  // of each rank
  std::int64_t now_ns_ = 0;
  int calls_ = 0;
};

}  // namespace

int add_played(train::TraceWriter& trace, const Simulation& simulation, const Costs& costs,
               const std::vector<StepSpec>& steps) {
  const Layout& layout = simulation.layouts.front();
  Timeline timeline(layout);
  const auto with_each = [&](const auto& add) {
    for (const comm::Strategy& strategy : simulation.strategies) {
      const auto links = costs.of(strategy.name, layout);
      const comm::Network network =
          network_of(layout, links.value_or(LinkCosts{}), simulation.slow);
      if (links && why_not_recorded(strategy, network).empty()) add(strategy, network);
    }
  };
  for (const std::int64_t bytes : simulation.sizes) {
    with_each([&](const comm::Strategy& strategy, const comm::Network& network) {
      timeline.add_call(strategy, network, bytes);
    });
  }
  for (const StepSpec& spec : steps) {
    const StepPlan plan = step_plan(spec, layout.machines > 1);
    with_each([&](const comm::Strategy& strategy, const comm::Network& network) {
      timeline.add_step(strategy, network, spec, plan);
    });
  }
  timeline.add_to(trace);
  return timeline.calls();
}

}  // namespace ringlet::bench
