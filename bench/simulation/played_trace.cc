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
    span.bytes = moved_bytes(touch, schedule_.size());
    comm::Range data = touch.kind == Kind::copy ? touch.from : touch.mine;
    if (touch.kind == Kind::reduce_for_all) data.begin = own_.shown.back().begin + touch.begin;
    details.begin = offset_of(data);
    if (details.begin >= 0) details.end = details.begin + data.bytes;
    details.into = touch.kind == Kind::reduce_for_all ? all : own;
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
    details.op = name_of(comm::combine_of(kOp));
    return "direct";
  }

  const comm::Schedule& schedule_;
  const comm::RankSchedule& own_;
  int rank_;
  ExchangeDetails details_{};
};

/// A call that begins at `begin_ns`; returns when it has ended.
std::int64_t add_call(std::vector<Tracer>& ranks, const std::string& name, std::int64_t call,
                      const comm::Schedule& schedule, const comm::Network& network,
                      std::int64_t begin_ns) {
  const auto at = [begin_ns](double seconds) { return begin_ns + std::llround(1e9 * seconds); };
  std::vector<std::vector<std::pair<double, double>>> times(ranks.size());
  for (int rank = 0; rank < schedule.size(); ++rank) {
    times[static_cast<std::size_t>(rank)].resize(schedule.of(rank).steps.size());
  }
  const std::vector<double> ends =
      play(schedule, network, {.step = [&](const comm::PlayedStep& step) {
             times[static_cast<std::size_t>(step.rank)][step.step] = {step.begin_s, step.end_s};
           }});
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    StepText text(schedule, static_cast<int>(rank), call);
    for (std::size_t step = 0; step < times[rank].size(); ++step) {
      const auto [begin, end] = times[rank][step];
      text.add(ranks[rank], step, {.begin_ns = at(begin), .end_ns = at(end)});
    }
    const ExchangeDetails details{.call = call,
                                  .type = name_of(DType::f32),
                                  .reduce = name_of(kOp),
                                  .ranks = schedule.size()};
    Span span{.category = "collective",
              .begin_ns = begin_ns,
              .end_ns = at(ends[rank]),
              .bytes = schedule.of(static_cast<int>(rank)).data.bytes};
    fmt::format_to_n(span.name.data(), span.name.size() - 1, "{}", name);
    ranks[rank].add(span, &details);
  }
  return at(*std::max_element(ends.begin(), ends.end()));
}

}  // namespace

int add_played(train::TraceWriter& trace, const Simulation& simulation, const Costs& costs) {
  const Layout& layout = simulation.layouts.front();
  std::vector<Tracer> ranks(static_cast<std::size_t>(layout.ranks()));
  std::int64_t now_ns = 0;
  int calls = 0;
  for (const std::int64_t bytes : simulation.sizes) {
    for (const comm::Strategy& strategy : simulation.strategies) {
      const auto links = costs.of(strategy.name, layout);
      const comm::Network network =
          network_of(layout, links.value_or(LinkCosts{}), simulation.slow);
      if (!links || !why_not_recorded(strategy, network).empty()) continue;
      const comm::Schedule schedule =
          record(strategy.make, network, {.count = bytes / size_of(DType::f32), .addresses = true});
      const std::string name = fmt::format("{} {}", strategy.name, size_text(bytes));
      const std::int64_t end_ns = add_call(ranks, name, ++calls, schedule, network, now_ns);
      now_ns = end_ns + (end_ns - now_ns) / 10;
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    trace.add(static_cast<int>(rank), 2, "communication", std::move(ranks[rank]));
  }
  return calls;
}

}  // namespace ringlet::bench
