#include "app/commands/simulate_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "base/one_line.h"
#include "bench/all_reduce/sizes.h"
#include "comm/schedule/schedule.h"
#include "train/recipe/models.h"
#include "train/recipe/option.h"
#include "train/sync/tuning.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;
using bench::Layout;

constexpr const char* kWhat = "What is simulated";
constexpr const char* kCosts = "Costs";
constexpr const char* kFiles = "Files";

/// What `parse` takes: "'5' is no time such as 5us".
template <class T>
CLI::Validator read_by(std::optional<T> (*parse)(std::string_view), const char* kind) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        return parse(text) ? "" : fmt::format("'{}' is no {}", text, kind);
      },
      "");
}

constexpr const char* kTime = "time such as 300ns, 5us or 1ms";

CLI::Validator layout_in_words() {
  static const std::string kKind =
      fmt::format("number of machines and of each one's ranks, such as 512x8, of 2 to {} ranks",
                  bench::kMostRanks);
  return read_by(bench::parse_layout, kKind.c_str());
}

/// A row of SimulateFlags that is a time or a rate.
train::Option<SimulateFlags> quantity(const char* key, double SimulateFlags::*field, bool is_time,
                                      const char* help) {
  const auto written = is_time ? bench::seconds_text : bench::rate_text;
  const auto parse = is_time ? bench::parse_seconds : bench::parse_rate;
  return train::named_option<SimulateFlags>(
      key,
      [=](const SimulateFlags& flags) {
        return flags.*field > 0 ? written(flags.*field) : std::string();
      },
      [=](SimulateFlags& flags, const std::string& text) { flags.*field = *parse(text); },
      {.help = help, .value_name = is_time ? "TIME" : "RATE"});
}

void add_cost_flags(CLI::App& command, SimulateFlags& flags) {
  add_flags(
      command, flags, kCosts,
      {quantity("alpha", &SimulateFlags::alpha, true,
                "latency of a message: 300ns, 5us, 1ms; with --machines, of one between machines"),
       quantity("beta", &SimulateFlags::beta, false,
                "bytes a second in powers of ten: 25M, 50G; with --machines, of a machine's link, "
                "which its ranks share"),
       quantity("adding", &SimulateFlags::adding, false,
                "bytes a second that a rank adds; without this, adding costs nothing"),
       quantity("alpha_inside", &SimulateFlags::alpha_inside, true,
                "latency of a message inside of a machine; without this, as --alpha"),
       quantity("beta_inside", &SimulateFlags::beta_inside, false,
                "bytes a second between two ranks of a machine; without this, as --beta")});
  CLI::Option* from =
      command
          .add_option("--from", flags.from,
                      "each strategy's own costs, as fitted to a file of bench all-reduce --json "
                      "or of tune [this machine's table of tune]")
          ->type_name("FILE")
          ->group(kCosts);
  for (const char* flag : {"--alpha", "--alpha-inside"}) {
    command.get_option(flag)->check(read_by(bench::parse_seconds, kTime));
  }
  for (const char* flag : {"--beta", "--beta-inside", "--adding"}) {
    command.get_option(flag)->check(
        read_by(bench::parse_rate, "rate such as 25M or 50G, in bytes a second"));
  }
  for (const char* flag : {"--alpha", "--beta", "--adding", "--alpha-inside", "--beta-inside"}) {
    from->excludes(command.get_option(flag));
  }
}

void add_step_flags(CLI::App& command, SimulateFlags& flags) {
  const char* group = "A training step";
  command
      .add_option("--train-step", flags.step.model,
                  "a step of this model as well, whose gradients are summed while backward goes on")
      ->check(one_of(train::model_names()))
      ->type_name("MODEL")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--compute",
          [&flags](const std::string& text) { flags.step.compute_s = *bench::parse_seconds(text); },
          "forward and backward of the whole batch by one replica; ranks share it")
      ->check(read_by(bench::parse_seconds, kTime))
      ->type_name("TIME")
      ->group(group);
  command.add_option("--batch-size", flags.step.batch_size, "samples of a step over all ranks")
      ->transform(whole_number(1))
      ->capture_default_str()
      ->type_name("N")
      ->group(group);
  command
      .add_option(
          "--bucket-kb", flags.bucket_kb,
          "sizes of buckets in KiB, each a step of its own; 0: a bucket for each tensor [as "
          "in training]")
      ->delimiter(',')
      ->transform(whole_number(0))
      ->type_name("N,N,...")
      ->group(group);
}

std::vector<std::string> names_to_simulate() {
  std::vector<std::string> names{"all"};
  const comm::Strategies known;
  for (const comm::Strategy& strategy : known.all()) names.emplace_back(strategy.name);
  return names;
}

/// Throws UsageError where `flag` was given without the other one.
void require_beside(bool given, const char* flag, bool other_given, const char* other) {
  if (given && !other_given) throw UsageError(fmt::format("{} needs {} beside it", flag, other));
}

bench::Costs given_costs(const SimulateFlags& flags) {
  const bool alpha = flags.alpha > 0, beta = flags.beta > 0;
  const bool alpha_inside = flags.alpha_inside > 0, beta_inside = flags.beta_inside > 0;
  require_beside(alpha, "--alpha", beta, "--beta");
  require_beside(beta, "--beta", alpha, "--alpha");
  require_beside(alpha_inside, "--alpha-inside", beta_inside, "--beta-inside");
  require_beside(beta_inside, "--beta-inside", alpha_inside, "--alpha-inside");
  require_beside(alpha_inside, "--alpha-inside", !flags.machines.empty(), "--machines");
  require_beside(alpha_inside, "--alpha-inside", alpha, "--alpha");
  require_beside(flags.adding > 0, "--adding", alpha, "--alpha");
  const double adding = flags.adding > 0 ? 1 / flags.adding : 0;
  bench::LinkCosts costs{.between = {flags.alpha, 1 / flags.beta, adding}};
  costs.inside = alpha_inside ? comm::CostModel{flags.alpha_inside, 1 / flags.beta_inside, adding}
                              : costs.between;
  return bench::Costs(costs);
}

template <class T>
std::vector<T> without_repetition(const std::vector<T>& values) {
  std::vector<T> once;
  for (const T& value : values) {
    if (std::find(once.begin(), once.end(), value) == once.end()) once.push_back(value);
  }
  return once;
}

/// All of `machines` that so many ranks fill.
Layout layout_for(int ranks, const std::optional<Layout>& machines) {
  if (!machines) return {1, ranks};
  if (ranks % machines->each != 0 || ranks > machines->ranks()) {
    throw UsageError(
        fmt::format("--ranks {} does not fill machines of {} ranks, of which "
                    "--machines {}x{} has {}",
                    ranks, machines->each, machines->machines, machines->each, machines->machines));
  }
  return {ranks / machines->each, machines->each};
}

std::vector<Layout> layouts_of(const SimulateFlags& flags,
                               const std::vector<bench::Measurement>& measured) {
  std::optional<Layout> machines;
  if (!flags.machines.empty()) machines = bench::parse_layout(flags.machines);
  std::vector<Layout> layouts;
  for (const int ranks : without_repetition(flags.ranks)) {
    layouts.push_back(layout_for(ranks, machines));
  }
  if (!layouts.empty()) return layouts;
  if (machines) return {*machines};
  for (const bench::Measurement& row : measured) {
    const Layout layout{row.machines, row.ranks / row.machines};
    const bool is_new = std::none_of(layouts.begin(), layouts.end(), [&](const Layout& other) {
      return other.machines == layout.machines && other.each == layout.each;
    });
    if (is_new && layout.ranks() == row.ranks && row.ranks <= bench::kMostRanks)
      layouts.push_back(layout);
  }
  if (layouts.empty()) layouts = {{1, 2}, {1, 4}, {1, 8}};
  return layouts;
}

/// Of a step, with its statistics.
std::int64_t gradient_bytes(const bench::StepSpec& spec) {
  std::int64_t bytes = 0;
  for (const bench::StepSum& sum : step_plan(spec, false).sums) bytes += sum.bytes;
  return bytes;
}

std::vector<std::int64_t> sizes_of(const SimulateFlags& flags,
                                   const std::vector<bench::Measurement>& measured) {
  constexpr std::int64_t kUsual = 504 << 10, kElement = sizeof(float), kMost = 1LL << 40;
  std::vector<std::int64_t> sizes = flags.bytes;
  for (const std::int64_t bytes : sizes) {
    if (bytes < kElement) {
      throw UsageError(fmt::format("--bytes {} holds no element of {} bytes", bytes, kElement));
    }
    if (bytes > kMost) {
      throw UsageError(fmt::format("--bytes {} is more than 1024G", bench::size_text(bytes)));
    }
  }
  if (!sizes.empty()) return sizes;
  for (const bench::Measurement& row : measured) {
    if (row.bytes >= kElement && row.bytes <= kMost) sizes.push_back(row.bytes);
  }
  if (sizes.empty()) sizes = {flags.step.model.empty() ? kUsual : gradient_bytes(flags.step)};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<bench::SlowRank> slow_of(const SimulateFlags& flags,
                                     const std::vector<Layout>& layouts) {
  std::vector<bench::SlowRank> slow;
  for (const std::string& text : flags.slow) {
    const bench::SlowRank next = *bench::parse_slow(text);
    if (std::any_of(slow.begin(), slow.end(), [&](auto& one) { return one.rank == next.rank; })) {
      throw UsageError(fmt::format("--slow names rank {} twice", next.rank));
    }
    slow.push_back(next);
  }
  for (const Layout& layout : layouts) {
    for (const bench::SlowRank& rank : slow) {
      if (rank.rank < layout.ranks()) continue;
      throw UsageError(fmt::format("--slow {}: there are {} ranks, which count from 0", rank.rank,
                                   layout.ranks()));
    }
  }
  return slow;
}

void require_traceable(const std::vector<Layout>& layouts) {
  if (layouts.size() > 1) throw UsageError("--trace of a simulation takes one number of --ranks");
  const int ranks = layouts.front().ranks();
  if (ranks <= comm::kMostAddressed) return;
  throw UsageError(
      fmt::format("--trace takes up to {} ranks, not {}", comm::kMostAddressed, ranks));
}

std::vector<comm::Strategy> strategies_of(const SimulateFlags& flags) {
  const comm::Strategies known;
  const auto& names = flags.strategies;
  if (std::find(names.begin(), names.end(), "all") != names.end()) return known.all();
  std::vector<comm::Strategy> strategies;
  for (const std::string& name : without_repetition(names)) {
    strategies.push_back(*known.find(name));
  }
  return strategies;
}

}  // namespace

void add_simulate_flags(CLI::App& command, SimulateFlags& flags) {
  const std::vector<std::string> strategies = names_to_simulate();
  command.add_option("--strategies", flags.strategies, "only some of them [all]")
      ->delimiter(',')
      ->check(one_of(strategies))
      ->type_name(fmt::format("{}", fmt::join(strategies, "|")))
      ->group(kWhat);
  command
      .add_option("--ranks", flags.ranks,
                  "numbers of ranks [2,4,8, all of --machines, or those of --measured]")
      ->delimiter(',')
      ->transform(whole_number(2, bench::kMostRanks))
      ->type_name("N,N,...")
      ->group(kWhat);
  command
      .add_option("--bytes", flags.bytes,
                  "bytes on each rank, in powers of two: 4096, 504K, 64M [504K, or those of "
                  "--measured]")
      ->delimiter(',')
      ->transform(size_in_bytes())
      ->type_name("SIZE,SIZE,...")
      ->group(kWhat);
  command
      .add_option("--machines", flags.machines,
                  "machines and the ranks of each: 512x8; --ranks fill as many as they need [all "
                  "ranks are on one]")
      ->check(layout_in_words())
      ->type_name("MxN")
      ->group(kWhat);
  command
      .add_option(
          "--slow", flags.slow,
          "a rank whose messages and additions, and forward and backward of --train-step, take "
          "several times as long: 17:3x")
      ->delimiter(',')
      ->check(read_by(bench::parse_slow, "rank and factor such as 17:3x"))
      ->type_name("RANK:FACTORx,...")
      ->group(kWhat);
  add_cost_flags(command, flags);
  add_step_flags(command, flags);
  const auto file = [](const char* key, fs::path SimulateFlags::*field, const char* help) {
    return train::option(key, field, {.help = help, .value_name = "FILE"});
  };
  add_flags(
      command, flags, kFiles,
      {file("measured", &SimulateFlags::measured,
            "show what bench all-reduce --json measured beside it, and by how much it is off"),
       file("json", &SimulateFlags::json, "write the figures"),
       file("trace", &SimulateFlags::trace,
            "write what was played as a timeline (Chrome trace) of up to 64 ranks, a call for each "
            "strategy"),
       file("report", &SimulateFlags::report,
            "write a page with sliders for latency, bandwidth, adding, ranks and bytes; it "
            "needs no network")});
  add_force_flag(command, flags.force)->group(kFiles);
}

void note_step_flags(const CLI::App& command, SimulateFlags& flags) {
  flags.types_batch = command.count("--batch-size") > 0;
  flags.types_buckets = command.count("--bucket-kb") > 0;
}

std::vector<bench::StepSpec> steps_of(const SimulateFlags& flags) {
  const bool step = !flags.step.model.empty(), compute = flags.step.compute_s > 0;
  require_beside(step, "--train-step", compute, "--compute");
  require_beside(compute, "--compute", step, "--train-step");
  require_beside(flags.types_buckets, "--bucket-kb", step, "--train-step");
  require_beside(flags.types_batch, "--batch-size", step, "--train-step");
  std::vector<bench::StepSpec> steps;
  if (step && flags.bucket_kb.empty()) steps = {flags.step};
  for (const std::int64_t kb : flags.bucket_kb) {
    if (step) steps.emplace_back(flags.step).bucket_kb = kb;
  }
  return steps;
}

bench::Costs costs_of(const SimulateFlags& flags) {
  const double numbers[] = {flags.alpha, flags.beta, flags.adding, flags.alpha_inside,
                            flags.beta_inside};
  const bool given =
      std::any_of(std::begin(numbers), std::end(numbers), [](double number) { return number > 0; });
  if (given) return given_costs(flags);
  const fs::path table = train::tuning_file();
  const fs::path file = !flags.from.empty() ? flags.from : table;
  std::error_code error;
  std::vector<bench::Measurement> rows;
  if (const std::string why = train::why_foreign(table); flags.from.empty() && !why.empty()) {
    throw UsageError(why + ", or give --alpha and --beta");
  }
  if (!flags.from.empty() || fs::exists(table, error)) rows = bench::measured_rows(file);
  if (rows.empty() && flags.from.empty()) {
    throw UsageError(
        "nothing says what messages cost: give --alpha and --beta, such as --alpha 5us --beta 50G, "
        "or --from FILE, or run ringlet tune once");
  }
  return {rows, on_one_line(file.string())};
}

bench::Simulation simulation_of(const SimulateFlags& flags, const bench::Costs& costs,
                                const std::vector<bench::Measurement>& measured) {
  bench::Simulation simulation{.strategies = strategies_of(flags),
                               .layouts = layouts_of(flags, measured),
                               .sizes = sizes_of(flags, measured)};
  simulation.slow = slow_of(flags, simulation.layouts);
  if (!flags.trace.empty()) require_traceable(simulation.layouts);
  for (const Layout& layout : simulation.layouts) {
    const bool any = std::any_of(simulation.strategies.begin(), simulation.strategies.end(),
                                 [&](const comm::Strategy& strategy) {
                                   return costs.of(strategy.name, layout).has_value();
                                 });
    if (any) continue;
    throw UsageError(
        fmt::format("{}, which take two sizes or more that count; give --alpha and --beta, or run "
                    "ringlet tune on a quiet machine",
                    costs.why_not("any strategy", layout)));
  }
  return simulation;
}

}  // namespace ringlet::app
