#include "bench/simulation/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "bench/all_reduce/comparison.h"
#include "train/sync/tuning.h"

namespace ringlet::bench {

namespace {

std::string words_of(const comm::CostModel& model) {
  return fmt::format(
      "latency {}, {} bytes a second, adding {}", seconds_text(model.latency_s),
      rate_text(1 / model.seconds_per_byte),
      model.seconds_per_reduced_byte > 0 ? rate_text(1 / model.seconds_per_reduced_byte) : "free");
}

/// The times of a table of `ringlet tune`, as rows.
std::vector<Measurement> tuned_rows(const std::filesystem::path& file) {
  std::vector<Measurement> rows;
  for (const char* transport : {"local", "shm", "gloo", "mpi"}) {
    if (!rows.empty()) break;
    for (const auto& time : train::read_times(file, DeviceKind::cpu, transport)) {
      Measurement& row = rows.emplace_back();
      row.transport = transport;
      row.strategy = time.strategy;
      row.ranks = time.ranks;
      row.bytes = time.bytes;
      row.median_us = 1e6 * time.seconds;
    }
  }
  return rows;
}

}  // namespace

Costs::Costs(const std::vector<Measurement>& rows, std::string source)
    : source_(std::move(source)) {
  for (const Comparison& comparison : compare(rows)) {
    const Measurement usual;
    if (std::tie(comparison.level, comparison.collective, comparison.type, comparison.op,
                 comparison.in_place) !=
        std::tie(usual.level, usual.collective, usual.type, usual.op, usual.in_place)) {
      continue;
    }
    for (const Series& series : comparison.series) {
      const Measurement& row = series.rows.front();
      if (!series.fit || row.engine != Measurement().engine) continue;
      Fitted& fitted = fitted_.emplace_back(
          Fitted{row.strategy, row.ranks, row.machines, series.fit->model, {}});
      if (series.knows_error()) fitted.worst_error = series.fit->worst_error;
      for (const Measurement& m : series.curve) fitted.times[m.bytes] = m.median_us;
    }
  }
}

bool Costs::is_quicker(const Fitted& a, const Fitted& b) {
  double sum = 0;  // of logarithms: each size counts alike
  for (const auto& [bytes, time] : a.times) {
    const auto other = b.times.find(bytes);
    if (other != b.times.end()) sum += std::log(time / other->second);
  }
  return sum < 0;
}

const Costs::Fitted* Costs::nearest(std::string_view strategy, const Layout& layout) const {
  const Fitted* best = nullptr;
  const auto away = [&](const Fitted& fitted) {
    return std::abs(std::log(static_cast<double>(fitted.ranks) / layout.ranks()));
  };
  for (const Fitted& fitted : fitted_) {
    if (fitted.strategy != strategy || (fitted.machines > 1) != (layout.machines > 1)) continue;
    if (best == nullptr || away(fitted) < away(*best) ||
        (away(fitted) == away(*best) && is_quicker(fitted, *best))) {
      best = &fitted;
    }
  }
  return best;
}

std::optional<LinkCosts> Costs::of(std::string_view strategy, const Layout& layout) const {
  if (given_) return given_;
  const Fitted* const fitted = nearest(strategy, layout);
  if (fitted == nullptr) return {};
  return LinkCosts{.between = fitted->model,
                   .inside = layout.machines > 1 ? comm::CostModel{} : fitted->model};
}

std::optional<double> Costs::worst_error(std::string_view strategy, const Layout& layout) const {
  const Fitted* const fitted = nearest(strategy, layout);
  return fitted == nullptr ? std::nullopt : fitted->worst_error;
}

std::string Costs::to_text(const Layout& layout) const {
  if (!given_) return fmt::format("each strategy's costs as fitted to {}", source_);
  if (layout.machines == 1) return words_of(given_->inside);
  return fmt::format("between machines {}; inside {}", words_of(given_->between),
                     words_of(given_->inside));
}

std::string Costs::why_not(std::string_view strategy, const Layout& layout) const {
  return fmt::format("{} has no costs of {} on {}", source_, strategy,
                     layout.machines > 1 ? "several machines" : "one machine");
}

std::vector<Measurement> measured_rows(const std::filesystem::path& file) {
  const auto json = json_or_discarded(read_text(file, kMostRowsBytes));
  const bool is_tuned = json.is_object() && json.contains("ranges");
  return is_tuned ? tuned_rows(file) : read_measurements(file);
}

}  // namespace ringlet::bench
