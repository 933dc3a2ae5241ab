#include "app/commands/scaling_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "app/cli/before_meeting.h"
#include "app/cli/error_exit.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/budget_flags.h"
#include "app/commands/scaling_rounds.h"
#include "app/commands/scaling_text.h"
#include "app/report/scaling_page.h"
#include "base/core_pace.h"
#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "base/processors.h"
#include "bench/all_reduce/judgement.h"
#include "bench/training/scaling_turns.h"
#include "comm/processes/launch.h"
#include "comm/transport/local/local_transport.h"
#include "kernels/cuda_devices.h"
#include "train/trainer.h"

namespace ringlet::app {

namespace {

std::int64_t batch_of(const BenchFlags& flags, std::int64_t batch_size, int replicas) {
  return flags.batch == bench::BatchRule::fixed ? batch_size : batch_size * replicas;
}

/// The options with so many replicas. The images are the same for all numbers.
train::TrainOptions options_with(const BenchFlags& flags, int replicas) {
  RawFlags raw = flags.train;
  raw.in_processes = flags.processes;
  raw.replicas = flags.processes ? 1 : replicas;
  train::TrainOptions options = resolve(raw);
  const std::int64_t batch_size = options.recipe.batch_size;
  const int most = *std::max_element(flags.replicas.begin(), flags.replicas.end());
  fill_batches(raw, options, batch_of(flags, batch_size, most));
  options.recipe.batch_size = batch_of(flags, batch_size, replicas);
  options.recipe.epochs = kManyEpochs;
  return options;
}

/// Whether so many replicas have no processor or GPU of their own.
bool do_share(const BenchFlags& flags, const train::Execution& execution, int replicas) {
  if (!on_gpu(execution)) return replicas * execution.threads > usable_processors();
  if (flags.processes) return replicas > (flags.train.device == "cuda" ? cuda_device_count() : 1);
  std::set<int> gpus;
  for (const DeviceId& device : execution.devices) gpus.insert(device.index);
  return std::ssize(gpus) < replicas;
}

/// Throws UsageError where several numbers of replicas cannot be measured so.
void check_scaling(const BenchFlags& flags) {
  std::set<int> seen;
  for (const int count : flags.replicas) {
    if (!seen.insert(count).second) {
      throw UsageError(fmt::format("--replicas: {} is there twice; name each number once", count));
    }
  }
  if (flags.why) {
    throw UsageError("--why explains one number of --replicas; leave it out, or name one");
  }
  if (flags.train.options.execution.stages != train::Execution().stages) {
    throw UsageError("several numbers of --replicas are of whole models; leave --stages out");
  }
  const std::int64_t batch_size = resolve(flags.train).recipe.batch_size;
  const int most = *seen.rbegin();
  if (flags.batch == bench::BatchRule::fixed && batch_size < most) {
    throw UsageError(
        fmt::format("--batch fixed: {} replicas cannot share --batch-size {}; take a larger one, "
                    "fewer replicas, or --batch per-replica",
                    most, batch_size));
  }
}

/// Throws UsageError under a launcher: it has started one number of processes, and no other one
/// can be measured.
void refuse_launcher(const std::optional<comm::ProcessPosition>& position) {
  if (!position || position->processes <= 1) return;
  throw UsageError(
      fmt::format("several numbers of --replicas: {} has started {} processes, and others cannot "
                  "be measured there; start the program by itself",
                  position->launcher, position->processes));
}

/// A row for each number of replicas, the smallest first, and what it is measured with.
struct Prepared {
  std::vector<train::RunSetup> setups;
  std::vector<bench::ScalingRow> rows;
};

Prepared prepare(const BenchFlags& flags, const data::Splits& data) {
  std::vector<int> counts = flags.replicas;
  std::sort(counts.begin(), counts.end());
  Prepared prepared;
  for (const int count : counts) {
    const train::TrainOptions options = options_with(flags, count);
    train::RunSetup setup = checked([&] { return make_bench_setup(options, data, count); });
    const std::int64_t batch = setup.options.recipe.batch_size;
    if (flags.batch == bench::BatchRule::per_replica && batch < options.recipe.batch_size) {
      throw UsageError(fmt::format(
          "--batch per-replica: {} replicas have a batch of {}, and there are {} images for "
          "training; take a smaller --batch-size or fewer replicas",
          count, options.recipe.batch_size, batch));
    }
    prepared.rows.push_back({.replicas = count,
                             .batch = batch,
                             .shares = do_share(flags, options.execution, count),
                             .layout = setup.replica.layout});
    prepared.setups.push_back(std::move(setup));
  }
  return prepared;
}

/// The layout that one replica more would have than the largest number that shares nothing; that
/// one's where there can be none.
Layout next_layout(const BenchFlags& flags, const Prepared& prepared, const data::Splits& data) {
  const bench::ScalingRow* last = bench::largest_unshared(prepared.rows);
  if (last == nullptr || on_gpu(prepared.setups.front().options.execution)) {
    return prepared.rows.back().layout;
  }
  const train::TrainOptions options = options_with(flags, last->replicas + 1);
  if (options.recipe.batch_size <= last->replicas) return last->layout;
  return train::make_run_setup(options, data, last->replicas + 1).replica.layout;
}

std::string settings_words(const BenchFlags& flags, const train::RunSetup& first) {
  const train::TrainOptions& options = first.options;
  const std::string batch =
      flags.batch == bench::BatchRule::fixed
          ? fmt::format("a batch of {} shared by all replicas", options.recipe.batch_size)
          : fmt::format("{} samples a replica", options.recipe.batch_size / first.replicas);
  const int threads = options.execution.threads;
  return fmt::format(
      "{}, {}, as {}{}, {}, {}, sync {}", options.recipe.model, batch,
      flags.processes ? "processes" : "threads",
      on_gpu(options.execution) ? " on " + options.execution.devices.front().to_string()
                                : fmt::format(" x {} thread{}", threads, threads == 1 ? "" : "s"),
      name_of(options.recipe.precision), name_of(first.replica.layout), options.execution.sync);
}

bench::ScalingPlan plan_of(const BenchFlags& flags, const CLI::App& command, std::size_t rows) {
  constexpr std::int64_t kWarmUp = 3;  // once for each round
  const int rounds = bench::rounds_of(static_cast<int>(flags.steps));
  return {.steps = flags.steps,
          .warm_up = command.count("--warm-up") > 0 ? flags.warm_up : kWarmUp,
          .budget_seconds = flags.budget_seconds,
          .begins = [=, budget = flags.budget_seconds](double seconds) {
            fmt::print("{} numbers of replicas, in {} round{}: about {:.0f} s, {}\n", rows, rounds,
                       rounds == 1 ? "" : "s", std::max(seconds, 1.0),
                       rounds == 1
                           ? fmt::format("of so few steps that nothing is judged (--steps {} is)",
                                         2 * bench::kFewestJudged)
                           : fmt::format("and up to {:g} s more to measure again what other work "
                                         "disturbs (--budget)",
                                         budget));
            std::fflush(stdout);  // before it takes that long
          }};
}

bench::RoundOf in_threads(const Prepared& prepared) {
  return [&prepared](std::size_t row, std::int64_t warm_up, std::int64_t steps) {
    const train::RunSetup& setup = prepared.setups[row];
    comm::LocalGroup group = train::threads_of(setup.options.execution);
    return bench::measure_round(group, setup, warm_up, steps);
  };
}

void write_scaling(const BenchFlags& flags, const ScalingResult& result,
                   const train::RunSetup& first) {
  if (flags.json.empty() && flags.report.empty()) return;
  nlohmann::json json = training_settings_json(first);
  json["replicas_as"] = flags.processes ? "processes" : "threads";
  json["batch_size"] = first.options.recipe.batch_size;
  if (flags.batch == bench::BatchRule::per_replica) {
    json["batch_size"] = first.options.recipe.batch_size / first.replicas;
  }
  json["scaling"] = scaling_json(result);
  std::vector<double> shares;
  for (const bench::ScalingRow& row : result.rows) shares.push_back(row.shared_core());
  if (const double mean = mean_share(shares); mean >= 0) json["shared_core"] = mean;
  if (!flags.json.empty()) write_file_atomically(flags.json, json.dump(2) + "\n");
  if (flags.report.empty()) return;
  const std::string page = report::scaling_page({.rule = result.rule,
                                                 .rows = result.rows,
                                                 .forecast = result.forecast,
                                                 .settings = result.settings,
                                                 .notes = notes_of(result),
                                                 .spread = spread_of(result),
                                                 .machine = json["machine"]});
  write_file_atomically(flags.report, page);
  fmt::print("wrote {} ({} KiB); open it in a browser\n", on_one_line(flags.report.string()),
             (page.size() + 1023) / 1024);
}

}  // namespace

void add_scaling_flags(CLI::App& command, BenchFlags& flags) {
  const char* group = "Several numbers of replicas";
  add_flags(command, flags, group,
            {train::choice_option("batch", &BenchFlags::batch,
                                  {{"fixed", bench::BatchRule::fixed},
                                   {"per-replica", bench::BatchRule::per_replica}},
                                  {.help = "what --batch-size is of: all replicas together (strong "
                                           "scaling), or each (weak scaling)"}),
             train::option("processes", &BenchFlags::processes,
                           {.help = "a process for each replica, started anew for each round"}),
             budget_option(&BenchFlags::budget_seconds),
             train::option("report", &BenchFlags::report,
                           {.help = "write a page with plots and tables; it needs no network",
                            .value_name = "FILE"})});
  command.get_option("--budget")->check(time_check());
}

void note_scaling_flags(const CLI::App& command, BenchFlags& flags) {
  for (const char* flag : {"--batch", "--processes", "--budget", "--report"}) {
    if (command.count(flag) > 0) flags.for_several = flag;
  }
}

void require_one_number(const BenchFlags& flags) {
  if (flags.for_several.empty()) return;
  throw UsageError(
      fmt::format("{} is for several numbers of replicas, as --replicas 1,2", flags.for_several));
}

int run_scaling_bench(const BenchFlags& flags, const CLI::App& command) {
  const auto position = checked([] { return comm::position_from_environment(); });
  if (flags.processes && is_scaling_process()) {
    return run_scaling_process(*position, [&](int replicas) {
      return ScalingTask{options_with(flags, replicas), flags.train};
    });
  }
  refuse_launcher(position);
  check_scaling(flags);
  note_stop_signals();
  const train::TrainOptions options =
      options_with(flags, *std::max_element(flags.replicas.begin(), flags.replicas.end()));
  Outputs outputs(command, flags.force);
  outputs.reads_data(options);
  outputs.writes("--json", flags.json);
  outputs.writes("--report", flags.report);
  const data::Splits data = open_data(flags.train, options);
  Prepared prepared = prepare(flags, data);
  const Layout next = next_layout(flags, prepared, data);
  ScalingResult result{
      .rule = flags.batch,
      .steps = flags.steps,
      .settings = settings_words(flags, prepared.setups.front()),
      .too_few = on_gpu(options.execution)
                     ? std::string("GPUs than replicas")
                     : fmt::format("processors ({}) than their threads", usable_processors())};
  std::optional<ScalingFamilies> families;
  if (flags.processes) families.emplace();
  const bench::RoundOf round = families ? families->rounds_of(prepared.rows) : in_threads(prepared);
  bench::measure_scaling(prepared.rows, plan_of(flags, command, prepared.rows.size()), round);
  result.rows = std::move(prepared.rows);
  result.forecast = bench::forecast_of(result.rows, result.rule, next);
  fmt::print("{}", scaling_text(result));
  write_scaling(flags, result, prepared.setups.front());
  return flags.strict && !bench::not_counting(result.rows).empty() ? kNotGood : 0;
}

}  // namespace ringlet::app
