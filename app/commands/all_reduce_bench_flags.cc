#include "app/commands/all_reduce_bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/option_flags.h"
#include "app/cli/outputs.h"
#include "app/commands/budget_flags.h"
#include "comm/all_reduce/strategies.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> strategy_names() {
  const auto names = comm::Strategies().names();
  return {names.begin(), names.end()};
}

constexpr DType kReducedTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

/// With their names.
template <class Values>
auto named(const Values& values) {
  std::vector<std::pair<std::string, std::decay_t<decltype(*std::begin(values))>>> pairs;
  for (const auto& value : values) pairs.emplace_back(name_of(value), value);
  return pairs;
}

train::Option<bench::SizeRange> size_option(const char* key, std::int64_t bench::SizeRange::*field,
                                            const char* short_name, const char* help) {
  return train::named_option<bench::SizeRange>(
      key,
      [field](const bench::SizeRange& range) {
        return range.*field == 0 ? "" : bench::size_text(range.*field);
      },
      [field](bench::SizeRange& range, const std::string& text) {
        range.*field = *bench::parse_size(text);
      },
      {.help = help, .also = short_name, .value_name = "SIZE"});
}

/// The group of the flags that say what is measured.
const char* work_group(const AllReduceFlags& flags) {
  return flags.options.collective().reduces ? "What is reduced" : "What is moved";
}

void add_size_flags(CLI::App& command, AllReduceFlags& flags) {
  using Range = bench::SizeRange;
  add_flags(command, flags.range, work_group(flags),
            {size_option("begin", &Range::begin, "-b", "smallest size in bytes: 4096, 4K, 64M"),
             size_option("end", &Range::end, "-e", "largest size"),
             train::option("factor", &Range::factor,
                           {.help = "each size is the one before times this",
                            .range = train::from(2),
                            .also = "-f"}),
             size_option("step", &Range::step, "-i",
                         "each size is the one before plus this, in place of --factor")});
  for (const char* flag : {"--begin", "--end", "--step"}) {
    command.get_option(flag)->transform(size_in_bytes());
  }
  command.get_option("--step")->excludes(command.get_option("--factor"));
}

/// Out of place where the collective runs in place by itself, else the other way round.
void add_place_flag(CLI::App& command, AllReduceFlags& flags) {
  using enum bench::NaturalPlace;
  constexpr const char* kKeeps =
      "keep the input: copy it to where the result will be, in the timed part; the collectives "
      "themselves are in place";
  constexpr const char* kOverwrites =
      "let the result take the input's place: copy it aside first, in the timed part; the "
      "collective itself needs both";
  const bench::NaturalPlace place = flags.options.collective().place;
  const bool is_apart = place == apart;
  add_flags(command, flags, work_group(flags),
            {train::option(is_apart ? "in_place" : "out_of_place",
                           is_apart ? &AllReduceFlags::in_place : &AllReduceFlags::out_of_place,
                           {.help = is_apart          ? kOverwrites
                                    : place == either ? "keep the input, which needs no copy"
                                                      : kKeeps})});
}

void add_work_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = work_group(flags);
  using Options = bench::AllReduceBenchOptions;
  add_flags(command, flags.options, group,
            {train::choice_option("type", &Options::type, named(kReducedTypes),
                                  {.help = "type of the elements", .also = "-d"})});
  if (flags.options.collective().reduces) {
    add_flags(command, flags.options, group,
              {train::choice_option("op", &Options::op, named(kReduceOps),
                                    {.help = "how elements are reduced", .also = "-o"})});
  }
  if (flags.options.collective().has_root) {
    add_flags(command, flags.options, group,
              {train::option(
                  "root", &Options::root,
                  {.help = flags.options.collective().reduces ? "the rank that gets the result"
                                                              : "the rank whose elements all get",
                   .range = train::from(0),
                   .also = "-r"})});
  }
  add_place_flag(command, flags);
}

void add_rank_flags(CLI::App& command, AllReduceFlags& flags, const char* default_ranks) {
  const char* group = "Ranks";
  constexpr int kMost = 1024;
  command
      .add_option(
          "--ranks", flags.ranks,
          fmt::format("number of ranks; several numbers are measured in turn [{}]", default_ranks))
      ->delimiter(',')
      ->transform(whole_number(2, kMost))
      ->type_name("N,N,...")
      ->group(group);
  add_run_flags(command, flags.run, group, {"transport", "device"});
  command.get_option("--transport")
      ->description(
          "local copies between threads; memory that processes share (shm), Gloo or MPI, with "
          "--processes; or NCCL with a GPU each; auto takes NCCL where it can be had");
  command
      .add_option("--devices", flags.run.devices, "a device for each rank, in place of --device")
      ->delimiter(',')
      ->check(device_name())
      ->type_name("cpu:0,cpu:0,...")
      ->excludes(command.get_option("--device")
                     ->description("device of all ranks; cuda: a GPU for each, from cuda:0 on")
                     ->check(device_name()))
      ->group(group);
}

/// Of the one collective that has several.
void add_strategy_flags(CLI::App& command, AllReduceFlags& flags) {
  if (flags.options.collective_id != bench::CollectiveId::all_reduce) return;
  std::vector<std::string> strategies = strategy_names();
  strategies.insert(strategies.begin(), "all");
  command
      .add_option("--strategies", flags.strategies,
                  "a list of strategies, or all that can run there [all]")
      ->delimiter(',')
      ->check(one_of(strategies))
      ->type_name(fmt::format("{}", fmt::join(strategies, "|")))
      ->group("Ranks");
}

void add_processes_flag(CLI::App& command, AllReduceFlags& flags, const char* help) {
  add_flags(command, flags, "Ranks",
            {train::option("processes", &AllReduceFlags::processes, {.help = help})});
}

void add_timeout_flag(CLI::App& command, AllReduceFlags& flags) {
  constexpr double kShortestTimeout = 0.01;  // seconds
  add_flags(
      command, flags.run.options.execution, "Measurement",
      {train::option("timeout", &train::Execution::comm_timeout,
                     {.help = "seconds that a rank waits for another before it names it and stops",
                      .range = train::from(kShortestTimeout),
                      .also = "--comm-timeout"})});
}

void add_measurement_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Measurement";
  using Options = bench::AllReduceBenchOptions;
  add_flags(
      command, flags.options, group,
      {train::option("iterations", &Options::iterations,
                     {.help = fmt::format(
                          "timed calls of each size [as many as take {} s, {} to {}]",
                          bench::kSecondsOfASize, bench::kFewestIterations, bench::kMostIterations),
                      .range = train::from(0),
                      .open_at_zero = true,
                      .also = "-n"}),
       train::option("warmup", &Options::warm_up,
                     {.help = "calls before those", .range = train::from(1), .also = "-w"})});
  add_budget_flags(command, flags);
  add_timeout_flag(command, flags);
  add_flags(command, flags.options, group,
            {train::option("pin", &Options::pin,
                           {.help = "let the system move ranks between processors, as in training; "
                                    "else each has one of its own, where there are enough",
                            .form = train::Switch::off}),
             train::option("check", &Options::check,
                           {.help = "do not compare the results with the exact ones",
                            .form = train::Switch::off})});
}

/// Flags of nccl-tests that mean the same here by another name, or what Ringlet does anyway. Others
/// of its letters are names of our flags, or answered with those (app/cli/neighbours.cc).
void add_nccl_flags(CLI::App& command) {
  const char* group = "As in nccl-tests";
  constexpr std::int64_t kMost = 1'000'000'000;
  command
      .add_option_function<std::int64_t>(
          "-c",
          [no_check = command.get_option("--no-check")](std::int64_t calls) {
            if (calls != 0 || no_check->count() > 0) return;
            no_check->add_result("true");  // a configuration that is printed has that name
            no_check->run_callback();
          },
          "0: as --no-check; any other number: check, as without it")
      ->transform(whole_number(0, kMost))
      ->type_name("N")
      ->group(group);
  command
      .add_option_function<std::string>(
          "-z", [](const std::string&) {}, "1, as without it: each call is timed by itself")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text == "1" ? std::string()
                               : fmt::format(
                                     "'{}' is not how calls are timed here: each by itself, "
                                     "from a meeting of all ranks on; leave it out",
                                     text);
          },
          ""))
      ->type_name("1")
      ->group(group);
}

void add_output_flags(CLI::App& command, AllReduceFlags& flags) {
  const char* group = "Files";
  const auto file = [](const char* key, fs::path AllReduceFlags::*field, const std::string& help) {
    return train::option(key, field, {.help = help, .value_name = "FILE"});
  };
  add_flags(command, flags, group,
            {file("json", &AllReduceFlags::json, "write the figures, the models and the machine"),
             file("csv", &AllReduceFlags::csv,
                  "write the figures as comma-separated values; -: to standard output, and the "
                  "words for people to standard error"),
             file("raw", &AllReduceFlags::raw,
                  "write the time of every call of every rank as comma-separated values"),
             file("trace", &AllReduceFlags::trace,
                  fmt::format("write a timeline of {} more calls of each size and strategy (Chrome "
                              "trace; open it in Perfetto); process N > 0 writes its own, with .pN "
                              "before the extension",
                              bench::kTracedCalls)),
             file("report", &AllReduceFlags::report,
                  "write a page with plots, models and tables; it needs no network")});
  command
      .add_option("--with", flags.with,
                  "compare with the rows of this file too, from --json or of another engine "
                  "(bench/peers); may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  using enum BenchFormat;
  add_flags(command, flags, group,
            {train::choice_option(
                "format", &AllReduceFlags::format,
                {{"table", table}, {"nccl", nccl}, {"osu", osu}, {"osu-full", osu_full}},
                {.help = "print the rows as nccl-tests does, in place and out of place, or as "
                         "OSU's micro-benchmarks do, with least, most and calls if full; of "
                         "all-reduce by auto, where --strategies says nothing else"})});
  add_flags(command, flags, group,
            {train::option("no_measure", &AllReduceFlags::no_measure,
                           {.help = "show only what --with brings"})});
  add_force_flag(command, flags.force)->group(group);
}

}  // namespace

CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const auto size = bench::parse_size(text);
        if (!size || *size < 1) return fmt::format("'{}' is no size such as 4096, 4K or 64M", text);
        text = fmt::format("{}", *size);
        return {};
      },
      "");
}

void add_all_reduce_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_work_flags(command, flags);
  add_rank_flags(command, flags, "2");
  add_strategy_flags(command, flags);
  add_processes_flag(command, flags,
                     "each rank is a process instead of a thread, over --transport shm: started "
                     "here, or by torchrun, mpirun or srun, on several machines too");
  add_measurement_flags(command, flags);
  add_output_flags(command, flags);
  add_nccl_flags(command);
}

void add_tuning_flags(CLI::App& command, AllReduceFlags& flags) {
  add_size_flags(command, flags);
  add_rank_flags(command, flags, "2,4,8");
  add_processes_flag(command, flags,
                     "be one of the processes that torchrun, mpirun or srun has started, a rank "
                     "each, on several machines too");
  add_budget_flags(command, flags);
  add_timeout_flag(command, flags);
}

}  // namespace ringlet::app
