#include "bench/simulation/simulation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"

namespace ringlet::bench {

namespace {

Simulated simulate(const comm::Strategy& strategy, const Layout& layout, std::int64_t bytes,
                   const std::vector<SlowRank>& slow, const Costs& costs) {
  const std::int64_t count = bytes / size_of(DType::f32);
  Simulated row{strategy.name, layout, count * size_of(DType::f32)};
  const std::optional<LinkCosts> links = costs.of(strategy.name, layout);
  const comm::Network network = network_of(layout, links.value_or(LinkCosts{}), slow);
  row.why_not = why_not_recorded(strategy, network);
  if (row.why_not.empty() && !links) row.why_not = costs.why_not(strategy.name, layout);
  if (!row.why_not.empty()) return row;
  const comm::Schedule schedule = record(strategy.make, network, {.count = count});
  const comm::Totals totals = totals_of(schedule);
  row.seconds = seconds_of(schedule, network);
  row.model_seconds = model_seconds(strategy, network, static_cast<double>(row.bytes));
  row.steps = totals.steps;
  row.messages = totals.messages;
  row.busiest_bytes = totals.busiest_bytes;
  return row;
}

/// Whether `measured` is of the row's all-reduce, and decides.
bool is_of(const Simulated& row, const Measurement& measured) {
  const Measurement usual;
  return measured.decides() && measured.strategy == row.strategy &&
         measured.ranks == row.layout.ranks() && measured.machines == row.layout.machines &&
         measured.bytes == row.bytes && measured.engine == usual.engine &&
         measured.collective == usual.collective && measured.level == usual.level &&
         measured.type == usual.type && measured.op == usual.op && measured.in_place;
}

}  // namespace

comm::Network network_of(const Layout& layout, const LinkCosts& costs,
                         const std::vector<SlowRank>& slow) {
  comm::Network network = layout.machines == 1 ? comm::one_machine(layout.each, costs.inside)
                                               : comm::equal_machines(layout.machines, layout.each,
                                                                      costs.between, costs.inside);
  if (!slow.empty()) network.slowness.assign(static_cast<std::size_t>(network.ranks), 1);
  for (const SlowRank& rank : slow) {
    network.slowness.at(static_cast<std::size_t>(rank.rank)) = rank.factor;
  }
  return network;
}

double model_seconds(const comm::Strategy& strategy, const comm::Network& network, double bytes) {
  const int machines = network.machines();
  if (machines == 1) {
    return predicted_seconds(strategy.path_cost, network.ranks, bytes, network.inside);
  }
  const comm::LevelCosts costs =
      strategy.costs_of_levels(machines, network.ranks / machines, bytes, network.between);
  return seconds_of(costs.between, network.between) + seconds_of(costs.inside, network.inside);
}

std::vector<Simulated> simulate(const Simulation& simulation, const Costs& costs) {
  std::vector<Simulated> rows;
  for (const Layout& layout : simulation.layouts) {
    for (const std::int64_t bytes : simulation.sizes) {
      for (const comm::Strategy& strategy : simulation.strategies) {
        rows.push_back(simulate(strategy, layout, bytes, simulation.slow, costs));
      }
    }
  }
  return rows;
}

int set_measured(std::vector<Simulated>& rows, const std::vector<Measurement>& measured,
                 int cores) {
  int found = 0;
  for (Simulated& row : rows) {
    const Measurement* quickest = nullptr;
    for (const Measurement& one : measured) {
      if (is_of(row, one) && (quickest == nullptr || one.median_us < quickest->median_us))
        quickest = &one;
    }
    if (quickest == nullptr || !row.why_not.empty()) continue;
    ++found;
    row.measured = *quickest;
    row.took_turns = cores > 0 && row.layout.each > cores;
  }
  return found;
}

nlohmann::json to_json(const std::vector<Simulated>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Simulated& row : rows) {
    nlohmann::json& json = list.emplace_back();
    json = {{"strategy", row.strategy},
            {"ranks", row.layout.ranks()},
            {"machines", row.layout.machines},
            {"bytes", row.bytes}};
    if (!row.why_not.empty()) {
      json["why_not"] = row.why_not;
      continue;
    }
    json.update({{"seconds", row.seconds},
                 {"model_seconds", row.model_seconds},
                 {"steps", row.steps},
                 {"messages", row.messages},
                 {"busiest_bytes", row.busiest_bytes}});
    if (!row.measured) continue;
    json.update({{"measured_seconds", 1e-6 * row.measured->median_us}, {"error", row.error()}});
    if (row.took_turns) json["took_turns"] = true;
  }
  return {{"rows", std::move(list)}};
}

}  // namespace ringlet::bench
