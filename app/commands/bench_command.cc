// ringlet bench train
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/flags.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands/scaling_bench.h"
#include "app/commands/step_gap_text.h"
#include "app/commands/training_bench.h"
#include "base/core_pace.h"
#include "base/files/atomic_file.h"
#include "bench/fma_peak.h"
#include "bench/training/step_gap.h"
#include "bench/training/training_bench.h"
#include "comm/processes/launch.h"
#include "data/synthetic.h"
#include "train/telemetry/console.h"

namespace ringlet::app {

namespace {

double nominal_gflops(const bench::TrainingSpeed& speed) {
  return 1e-9 * speed.nominal_flops / speed.step.median;
}

/// Before the figures, where they do not count or the cores were shared.
void print_busy(const bench::TrainingSpeed& speed) {
  if (!speed.why_not.empty()) {
    fmt::print("the machine was busy, and the figures do not count: {}\n", speed.why_not);
  }
  const std::string shared =
      shared_core_words(speed.shared_core, "the replicas' cores were", "their other hyper-threads",
                        "steps take up to twice as long");
  if (!shared.empty()) fmt::print("{}\n", shared);
}

void print_rate(const bench::TrainingSpeed& speed) {
  fmt::print("{} samples/s, {:.3f} ms a step (mean; median {:.3f}, fastest {:.3f})\n",
             train::with_commas(std::llround(speed.samples_per_second)), 1e3 * speed.step.mean,
             1e3 * speed.step.median, 1e3 * speed.step.fastest);
}

/// The host only launches, so its phases say nothing of the GPU's: see --trace or Nsight Systems.
void print_gpu_speed(const bench::TrainingSpeed& speed) {
  print_rate(speed);
  fmt::print("{:.1f} GFLOP/s of the nominal work (median)\n", nominal_gflops(speed));
}

void print_speed(const bench::TrainingSpeed& speed, const train::Execution& execution,
                 double peak_gflops) {
  const train::PhaseSeconds& mean = speed.phases;
  const struct {
    const char* name;
    double seconds;
  } rows[] = {{"data", mean.data},
              {"forward", mean.forward},
              {"backward", mean.backward},
              {"sync", mean.sync},
              {"update", mean.update}};
  fmt::print("{:<10} {:>9}  {:>7}\n", "phase", "ms a step", "share");
  for (const auto& row : rows) {
    fmt::print("{:<10} {:9.3f}  {:5.1f} %\n", row.name, 1e3 * row.seconds,
               100 * row.seconds / mean.total());
  }
  fmt::print("{:<10} {:9.3f}           (mean of {} steps, replica 0)\n\n", "all",
             1e3 * mean.total(), speed.steps);
  const double gflops = nominal_gflops(speed);
  const std::size_t threads =
      execution.devices.size() * static_cast<std::size_t>(execution.threads);
  print_rate(speed);
  fmt::print(
      "{:.1f} GFLOP/s of the nominal work (median) = {:.1f} % of the {:.1f} GFLOP/s that {} "
      "{} with nothing but multiply-adds, measured in this run\n",
      gflops, 100 * gflops / peak_gflops, peak_gflops, threads,
      threads == 1 ? "thread reaches" : "threads reach");
  if (speed.computed_flops < 0.99 * speed.nominal_flops) {
    fmt::print("{:.1f} % of the nominal work is computed: pixels that pooling drops are not\n",
               100 * speed.computed_flops / speed.nominal_flops);
  }
}

nlohmann::json phases_json(const train::PhaseSeconds& phases) {
  return {{"data", phases.data},
          {"forward", phases.forward},
          {"backward", phases.backward},
          {"sync", phases.sync},
          {"update", phases.update}};
}

nlohmann::json rounds_json(const std::vector<bench::SpeedRound>& rounds) {
  nlohmann::json list = nlohmann::json::array();
  for (const bench::SpeedRound& round : rounds) {
    list.push_back({{"samples_per_second", round.samples_per_second},
                    {"phase_seconds", phases_json(round.phases)}});
  }
  return list;
}

nlohmann::json as_json(const bench::TrainingSpeed& speed, const train::RunSetup& setup) {
  const train::Execution& execution = setup.options.execution;
  nlohmann::json json = training_settings_json(setup);
  json.update(
      {{"graph", execution.graph && on_gpu(execution) && setup.replicas == 1 && !setup.stages},
       {"replicas", setup.replicas},
       {"stages", setup.stages ? setup.stages->count() : 1},
       {"micro_batches", setup.options.recipe.accumulate},
       {"batch_size", setup.options.recipe.batch_size},
       {"layout", name_of(setup.replica.layout)},
       {"counts", speed.why_not.empty()},
       {"why_not", speed.why_not},
       {"steps", speed.steps},
       {"mean_seconds", speed.step.mean},
       {"median_seconds", speed.step.median},
       {"fastest_seconds", speed.step.fastest},
       {"samples_per_second", speed.samples_per_second},
       {"phase_seconds", phases_json(speed.phases)},
       {"rounds", rounds_json(speed.rounds)},
       {"nominal_gflops", nominal_gflops(speed)},
       {"computed_share", speed.computed_flops / speed.nominal_flops}});
  if (speed.shared_core >= 0) json["shared_core"] = speed.shared_core;
  return json;
}

/// The processor's measured peak.
class Peak {
 public:
  explicit Peak(int threads) : options_{.threads = threads} { measure(); }
  /// The clock may change while we measure: the better of several counts.
  void measure() { gflops_ = std::max(gflops_, bench::measure_fma_peak(options_)); }
  double gflops() const { return gflops_; }

 private:
  bench::FmaPeakOptions options_;
  double gflops_ = 0;
};

/// "2 stages by 1f1b, 8 micro-batches, "; nothing of a model that is not cut.
std::string stages_of_bench(const train::RunSetup& setup) {
  if (!setup.stages) return "";
  return fmt::format("{} stages by {}, {} micro-batches, ", setup.stages->count(),
                     name_of(setup.options.execution.pipeline), setup.options.recipe.accumulate);
}

/// Of a model in stages: what was forecast of a step, beside what was measured.
void print_forecast(const train::RunSetup& setup, const bench::TrainingSpeed& speed) {
  if (!setup.stages || !setup.stages->forecast.measured) return;
  const double forecast = setup.stages->forecast.step.seconds;
  fmt::print("\nforecast {:.1f} ms a step, measured {:.1f} ms (median): {:+.1f} %\n",
             1e3 * forecast, 1e3 * speed.step.median, 100 * (forecast / speed.step.median - 1));
}

/// What --why cannot explain is refused.
void require_several_replicas(const train::TrainOptions& options) {
  const auto ranks = std::ssize(options.execution.devices);
  if (on_gpu(options.execution)) {
    throw UsageError("--why is for processors: a GPU's host sees no phases; see train --trace");
  }
  if (options.execution.stages != train::Execution().stages) {
    throw UsageError("--why compares replicas with one; leave --stages out");
  }
  if (ranks < 2) throw UsageError("--why compares replicas with one; add --replicas 2 or more");
  if (options.recipe.batch_size < ranks) {
    throw UsageError(
        fmt::format("--why needs a sample for each replica; {} replicas share "
                    "--batch-size {}",
                    ranks, options.recipe.batch_size));
  }
  if (const auto position = comm::position_from_environment();
      position && position->processes > 1) {
    throw UsageError(
        fmt::format("--why is for replicas in one process, and {} has started {}; start "
                    "the program by itself",
                    position->launcher, position->processes));
  }
}

/// Says why, and returns it for programs.
nlohmann::json tell_why(const train::TrainOptions& options, const data::Splits& data,
                        double seconds) {
  const auto setup = [&](int replicas, std::int64_t batch_size) {
    train::TrainOptions other = options;
    other.recipe.batch_size = batch_size;
    other.execution.devices.resize(static_cast<std::size_t>(replicas));
    return make_bench_setup(other, data, replicas);
  };
  const std::int64_t batch_size = options.recipe.batch_size;
  const bool lanes = setup(1, batch_size).replica.layout == Layout::lanes;
  const bench::StepGap gap = bench::measure_step_gap(
      setup, static_cast<int>(options.execution.devices.size()), batch_size, seconds);
  fmt::print("\n{}", step_gap_text(gap, batch_size, lanes ? kLanes : 1));
  return step_gap_json(gap);
}

train::TrainOptions resolve_bench(const RawFlags& flags) {
  train::TrainOptions options = resolve(flags);
  fill_batches(flags, options, options.recipe.batch_size);
  return options;
}

int run(const BenchFlags& flags, const CLI::App& command) {
  if (flags.measures_scaling()) return run_scaling_bench(flags, command);
  require_one_number(flags);
  note_stop_signals();
  train::TrainOptions options = resolve_bench(flags.train);
  if (flags.why) require_several_replicas(options);
  Outputs outputs(command, flags.force);
  outputs.reads_data(options);
  outputs.writes("--json", flags.json);
  options.recipe.epochs = kManyEpochs;
  const data::Splits data = open_data(flags.train, options);
  fit_micro_batches(flags.train, options, data.train->size());
  const train::Execution& execution = options.execution;
  const int ranks = static_cast<int>(execution.devices.size());
  const train::RunSetup setup = make_bench_setup(options, data, ranks);
  options.recipe.batch_size = setup.options.recipe.batch_size;

  const DType dtype = options.recipe.grad_dtype;
  const std::string exact = options.recipe.exact  ? ", exact"
                            : dtype != DType::f32 ? " as " + train::grad_dtype_name(options.recipe)
                                                  : "";
  bench::TrainingSpeed speed;
  nlohmann::json json;
  if (on_gpu(execution)) {
    bench::DeviceNotes notes;
    speed = bench::measure_training(setup, flags.warm_up, flags.steps,
                                    flags.json.empty() ? nullptr : &notes);
    print_busy(speed);
    fmt::print("{}, global batch {}, {} replica{} from {} on, sync {}{}, {}, graph {}\n\n",
               options.recipe.model, options.recipe.batch_size, ranks, ranks == 1 ? "" : "s",
               execution.devices.front().to_string(), execution.sync, exact,
               name_of(options.recipe.precision), execution.graph && ranks == 1 ? "on" : "off");
    print_gpu_speed(speed);
    json = as_json(speed, setup);
    json["first_step_seconds"] = notes.first_step_seconds;
    json["device_notes"] = notes.lines;
  } else {
    Peak peak(ranks * execution.threads);
    speed = bench::measure_training(setup, flags.warm_up, flags.steps);
    peak.measure();
    print_busy(speed);
    fmt::print("{}, global batch {}, {}{} replica{} x {} thread{}, {}, {}, {}, sync {}{}\n\n",
               options.recipe.model, options.recipe.batch_size, stages_of_bench(setup),
               setup.replicas, setup.replicas == 1 ? "" : "s", execution.threads,
               execution.threads == 1 ? "" : "s", name_of(options.recipe.precision),
               name_of(setup.replica.layout), name_of(detect_instruction_set()), execution.sync,
               exact);
    print_speed(speed, execution, peak.gflops());
    print_forecast(setup, speed);
    json = as_json(speed, setup);
    json["peak_gflops"] = peak.gflops();
    json["share_of_peak"] = json["nominal_gflops"].get<double>() / peak.gflops();
  }
  if (flags.why) json["why"] = tell_why(options, data, flags.why_seconds);
  if (!flags.json.empty()) write_file_atomically(flags.json, json.dump(2) + "\n");
  return flags.strict && !speed.why_not.empty() ? kNotGood : 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<BenchFlags>();
  flags->train.model = "lenet-d2l";
  flags->train.recipe["data"] = std::string(data::kSyntheticName);
  flags->train.options.synthetic_train = 20000;
  flags->train.options.synthetic_test = 500;
  flags->train.options.allow_unseen_targets = true;  // nothing is learnt
  CLI::App* bench = app.add_subcommand("bench", "measure this machine");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "train", "samples a second, milliseconds a step by phase, share of the machine's peak");
  add_data_flags(*command, flags->train);
  add_recipe_flags(*command, flags->train);
  add_replica_flags(*command, flags->train, &flags->replicas);
  add_stage_flags(*command, flags->train);
  add_gpu_flags(*command, flags->train);
  add_sync_flags(*command, flags->train);
  const char* group = "Measurement";
  add_flags(*command, *flags, group,
            {train::option("warm_up", &BenchFlags::warm_up,
                           {.help = "steps before the clock starts", .range = train::from(1)}),
             train::option("steps", &BenchFlags::steps,
                           {.help = "steps to measure", .range = train::from(1)}),
             train::option("why", &BenchFlags::why,
                           {.help = "say why the replicas together take longer than their share of "
                                    "one replica's time"}),
             train::option("why_seconds", &BenchFlags::why_seconds,
                           {.help = "how long --why measures", .range = train::from(1)}),
             train::option("strict", &BenchFlags::strict,
                           {.help = "end with exit code 4 where other work disturbed the steps"}),
             train::option("json", &BenchFlags::json, {.help = "write the figures to this file"})});
  add_force_flag(*command, flags->force)->group(group);
  add_scaling_flags(*command, *flags);
  command->callback([flags, command, &action] {
    note_data_flags(*command, flags->train);
    note_scaling_flags(*command, *flags);
    action = {[=] { return run(*flags, *command); },
              [flags] { return values_of(resolve_bench(flags->train)); }};
  });
  add_bench_collective_commands(*bench, action);
}

}  // namespace ringlet::app
