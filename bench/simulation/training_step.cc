#include "bench/simulation/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"
#include "nn/plan.h"
#include "train/sync/gradient_sync.h"
#include "train/task/replica_spec.h"

namespace ringlet::bench {

namespace {

/// Of the images that `--data synthetic` draws.
constexpr nn::ModelInput kInput{.channels = 1, .height = 28, .width = 28, .outputs = 10};

nn::Plan plan_of(const std::string& model_name) {
  train::ReplicaSpec spec{.input = kInput, .layout = ringlet::Layout::lanes};
  spec.recipe.model = model_name;
  const auto model = train::make_model(spec);
  return nn::plan_training(nn::register_model(*model), train::batch_of(spec, kLanes),
                           train::pass_of(*train::task_of(spec), *model, true));
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// The sums of a step, each recorded.
class Step {
 public:
  Step(const comm::Strategy& strategy, const comm::Network& network, std::vector<StepSum> sums)
      : network_(network), sums_(std::move(sums)) {
    for (const StepSum& sum : sums_) {
      schedules_.push_back(record(strategy.make, network, {.count = sum.bytes / 4}));
    }
  }

  double sums_alone() const {
    double seconds = 0;
    for (const comm::Schedule& schedule : schedules_) seconds += seconds_of(schedule, network_);
    return seconds;
  }

  /// Until the last rank has all sums and its own backward behind it. `compute`: of each rank.
  double seconds(const std::vector<double>& compute, bool overlap) const {
    std::vector<double> free(compute.size());  // when a rank's communication stream is
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      for (std::size_t rank = 0; rank < free.size(); ++rank) {
        free[rank] = std::max(free[rank], compute[rank] * (overlap ? sums_[i].ready : 1));
      }
      free = play(schedules_[i], network_, {}, free);
    }
    return std::max(largest(free), largest(compute));
  }

 private:
  const comm::Network& network_;
  std::vector<StepSum> sums_;
  std::vector<comm::Schedule> schedules_;
};

SimulatedStep simulate(const comm::Strategy& strategy, const Layout& layout, const StepSpec& spec,
                       const std::vector<SlowRank>& slow, const Costs& costs) {
  SimulatedStep step{strategy.name, layout, spec.bucket_kb};
  const auto links = costs.of(strategy.name, layout);
  const comm::Network network = network_of(layout, links.value_or(LinkCosts{}), slow);
  step.why_not = why_not_recorded(strategy, network);
  if (step.why_not.empty() && !links) step.why_not = costs.why_not(strategy.name, layout);
  if (!step.why_not.empty()) return step;
  const std::vector<double> compute = compute_seconds(spec, network);
  const std::vector<StepSum> sums = step_plan(spec, layout.machines > 1).sums;
  const Step played(strategy, network, sums);
  step.buckets = static_cast<int>(sums.size());
  step.compute_s = largest(compute);
  step.sums_s = played.sums_alone();
  step.seconds = played.seconds(compute, true);
  step.unoverlapped = played.seconds(compute, false);
  step.efficiency = spec.compute_s / (layout.ranks() * step.seconds);
  return step;
}

}  // namespace

double SimulatedStep::hidden() const {
  return sums_s > 0 ? std::clamp(1 - (seconds - compute_s) / sums_s, 0.0, 1.0) : 1;
}

std::vector<double> compute_seconds(const StepSpec& spec, const comm::Network& network) {
  const std::int64_t share = (spec.batch_size + network.ranks - 1) / network.ranks;
  const double one =
      spec.compute_s * static_cast<double>(share) / static_cast<double>(spec.batch_size);
  std::vector<double> compute;
  for (int rank = 0; rank < network.ranks; ++rank) compute.push_back(one * network.slow(rank));
  return compute;
}

StepPlan step_plan(const StepSpec& spec, bool between_machines) {
  const nn::Plan plan = plan_of(spec.model);
  train::SyncOptions options;
  options.bucket_kb = spec.bucket_kb;
  options = with_bucket_sizes(
      options, {.is_between_machines = between_machines, .gradient_bytes = plan.elements * 4});
  const double all = plan.forward.flops + plan.backward.flops;
  StepPlan step{.forward = plan.forward.flops / all};
  std::size_t next = 0;
  for (const train::Bucket& bucket : plan_buckets(plan, options)) {
    next += static_cast<std::size_t>(bucket.parameters);
    const double done = next == 0 ? 0 : plan.parameters[next - 1].final_flops;
    step.sums.push_back({bucket.wire_bytes(), (plan.forward.flops + done) / all});
  }
  return step;
}

std::vector<SimulatedStep> simulate_step(const Simulation& simulation, const StepSpec& spec,
                                         const Costs& costs) {
  std::vector<SimulatedStep> steps;
  for (const Layout& layout : simulation.layouts) {
    for (const comm::Strategy& strategy : simulation.strategies) {
      steps.push_back(simulate(strategy, layout, spec, simulation.slow, costs));
    }
  }
  return steps;
}

std::string to_text(const std::vector<SimulatedStep>& steps, const StepSpec& spec) {
  std::string text;
  const auto line = [](const auto&... words) {
    return fmt::format("{:<16} {:>8} {:>10} {:>10} {:>10} {:>12} {:>8} {:>11}\n", words...);
  };
  Layout layout{0, 0};
  for (const SimulatedStep& step : steps) {
    if (step.layout.machines != layout.machines || step.layout.each != layout.each) {
      layout = step.layout;
      text += fmt::format(
          "\na step of {}, {} samples on {} ranks{}; one replica would compute for {}\n",
          spec.model, spec.batch_size, layout.ranks(),
          spec.bucket_kb < 0 ? "" : fmt::format(", buckets of {} KiB", spec.bucket_kb),
          seconds_text(spec.compute_s));
      text += line("strategy", "buckets", "computing", "sums", "step", "not overlapped", "hidden",
                   "efficiency");
    }
    if (!step.why_not.empty()) {
      text += fmt::format("{:<16} {:>8}  {}\n", step.strategy, "-", step.why_not);
      continue;
    }
    text += line(step.strategy, step.buckets, seconds_text(step.compute_s),
                 seconds_text(step.sums_s), seconds_text(step.seconds),
                 seconds_text(step.unoverlapped), fmt::format("{:.0f} %", 100 * step.hidden()),
                 fmt::format("{:.0f} %", 100 * step.efficiency));
  }
  return text;
}

nlohmann::json to_json(const std::vector<SimulatedStep>& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (const SimulatedStep& step : steps) {
    nlohmann::json& json = list.emplace_back();
    json = {{"strategy", step.strategy},
            {"ranks", step.layout.ranks()},
            {"machines", step.layout.machines}};
    if (step.bucket_kb >= 0) json["bucket_kb"] = step.bucket_kb;
    if (!step.why_not.empty()) {
      json["why_not"] = step.why_not;
      continue;
    }
    json.update({{"buckets", step.buckets},
                 {"compute_seconds", step.compute_s},
                 {"sums_seconds", step.sums_s},
                 {"seconds", step.seconds},
                 {"not_overlapped_seconds", step.unoverlapped},
                 {"hidden", step.hidden()},
                 {"efficiency", step.efficiency}});
  }
  return list;
}

}  // namespace ringlet::bench
