#include "app/commands/bench_results.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>

#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/standard_output.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "app/commands/budget_flags.h"
#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/foreign_text.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/samples.h"
#include "comm/processes/launch.h"
#include "train/telemetry/device_report.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

/// Names the file of RowsFile.
constexpr const char* kRowsVariable = "RINGLET_ALL_REDUCE_ROWS";

class WrongResults : public Error {
 public:
  using Error::Error;
};

/// The samples lie beside the rows.
std::string raw_beside(const std::string& rows_file) { return rows_file + ".raw"; }

nlohmann::json rows_json(const std::vector<bench::Measurement>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const bench::Measurement& row : rows) list.push_back(to_json(row));
  return list;
}

}  // namespace

OtherRows read_others(const AllReduceFlags& flags) {
  OtherRows others;
  std::set<std::string> machines;
  for (const fs::path& file : flags.with) {
    const auto rows = bench::read_measurements(file);
    report::RowsOrigin origin{on_one_line(file.string()), bench::read_machine(file)};
    std::string machine = bench::machine_name(origin.machine);
    if (machine.empty()) {
      machine = "a machine that is not told";
    } else {
      machines.insert(machine);
    }
    for (const bench::Measurement& row : rows) others.rows.emplace_back(row).machine = machine;
    others.origins.push_back(std::move(origin));
  }
  if (others.rows.empty()) return others;
  if (!flags.no_measure) {
    const train::DeviceReport here = train::survey_processor();
    others.own_machine =
        bench::machine_name({{"processor", here.processor}, {"cores", here.cores}});
    machines.insert(others.own_machine);
  }
  if (machines.size() > 1) return others;
  others.own_machine.clear();
  for (bench::Measurement& row : others.rows) row.machine.clear();
  return others;
}

void check_bench_outputs(const AllReduceFlags& flags, const CLI::App& command, int processes) {
  if (flags.processes && flags.ranks.size() > 1 && !flags.trace.empty()) {
    throw UsageError("--trace with --processes takes one number of --ranks");
  }
  if (flags.csv_to_output() && flags.format != BenchFormat::table) {
    throw UsageError("--csv - and --format both write to standard output; give --csv a file");
  }
  Outputs outputs(command, flags.force);
  for (const fs::path& file : flags.with) outputs.reads("--with", file);
  outputs.writes("--json", flags.json);
  if (!flags.csv_to_output()) outputs.writes("--csv", flags.csv);
  outputs.writes("--raw", flags.raw);
  outputs.writes("--report", flags.report);
  for (int process = 0; process < processes && !flags.trace.empty(); ++process) {
    outputs.writes("--trace", file_of_process(flags.trace, process));
  }
}

namespace {

std::vector<bench::Measurement> all_rows(const BenchOutcome& outcome, const OtherRows& others) {
  std::vector<bench::Measurement> all = outcome.rows;
  for (bench::Measurement& row : all) row.machine = others.own_machine;
  all.insert(all.end(), others.rows.begin(), others.rows.end());
  return all;
}

/// The rows of --with, and which rows are the fastest of all.
void print_others(const People& people, const BenchOutcome& outcome, const OtherRows& others) {
  if (others.rows.empty()) return;
  for (const report::RowsOrigin& origin : others.origins) {
    people.say("rows of {}: {}\n", origin.name, report::text_of(origin));
  }
  const bool unlike = !others.rows.front().machine.empty();
  people.say("{}\n", unlike ? "the machines are unlike, and each is compared by itself\n" : "");
  for (const bench::Comparison& comparison : bench::compare(others.rows)) {
    people.say("{} ranks, {}, by --with{}\n{}", comparison.ranks, work_text(comparison),
               bench::where_text(comparison.machine),
               bench::table_heading(bench::label_width(comparison)));
    for (const bench::Series& series : comparison.series) {
      for (bench::Measurement row : series.rows) {
        row.strategy = series.label;
        people.say("{}", bench::table_row(row, bench::label_width(comparison)));
      }
    }
    people.say("\n");
  }
  people.say("{}", busy_line(others.rows));
  for (const bench::Comparison& comparison : bench::compare(all_rows(outcome, others))) {
    people.say("all of {} ranks, {}{}\n{}\n", comparison.ranks, work_text(comparison),
               bench::where_text(comparison.machine), to_text(comparison));
  }
}

void write_report(const People& people, const fs::path& file, const BenchOutcome& outcome,
                  const OtherRows& others, const nlohmann::json& machine) {
  std::vector<report::RowsOrigin> origins = others.origins;
  if (!outcome.rows.empty()) origins.insert(origins.begin(), {"this measurement", machine});
  const std::string page = report::all_reduce_page(all_rows(outcome, others), origins);
  write_file_atomically(file, page);
  print_if_possible([&] {
    people.say("wrote {} ({} KiB); open it in a browser\n", on_one_line(file.string()),
               (page.size() + 1023) / 1024);
  });
}

nlohmann::json document_of(const BenchOutcome& outcome, const nlohmann::json& machine) {
  const std::vector<bench::Comparison> comparisons = bench::compare(outcome.rows);
  const auto counting = std::count_if(outcome.rows.begin(), outcome.rows.end(),
                                      [](const bench::Measurement& row) { return row.counts; });
  return {{"build", build_facts()},
          {"busy", bench::not_counting(outcome.rows)},
          {"shared_cores", bench::on_shared_cores(outcome.rows)},
          {"late", bench::late_text(outcome.rows)},
          {"counting_rows", counting},
          {"machine", machine},
          {"rows", rows_json(outcome.rows)},
          {"models", bench::models_json(comparisons)},
          {"fastest", bench::fastest_json(comparisons)},
          {"regrets", bench::regrets_json(comparisons)}};
}

/// In another program's columns.
std::string foreign_text_of(const AllReduceFlags& flags,
                            const std::vector<bench::Measurement>& rows) {
  if (flags.format != BenchFormat::nccl) {
    return bench::osu_text(rows, flags.format == BenchFormat::osu_full);
  }
  const bench::SizeRange& range = flags.range;
  std::string step;
  if (!flags.no_measure) {
    step = range.step > 0 ? fmt::format("{}(bytes)", range.step)
                          : fmt::format("{}(factor)", range.factor);
  }
  return bench::nccl_text(
      rows, {.step = step, .warm_up = flags.options.warm_up, .device = flags.run.device});
}

void write_csv(const AllReduceFlags& flags, const std::vector<bench::Measurement>& rows) {
  if (flags.csv_to_output()) {
    print_if_possible([&] { fmt::print("{}", bench::to_csv(rows)); });
  } else if (!flags.csv.empty()) {
    write_file_atomically(flags.csv, bench::to_csv(rows));
  }
}

}  // namespace

void write_bench_outputs(const AllReduceFlags& flags, const BenchOutcome& outcome,
                         const OtherRows& others, std::optional<bench::MachineRecord> machine) {
  const People people(flags);
  print_if_possible([&] {
    print_others(people, outcome, others);
    if (flags.format == BenchFormat::table) return;
    const auto& rows = outcome.rows.empty() ? others.rows : outcome.rows;
    fmt::print("{}", foreign_text_of(flags, rows));
  });
  nlohmann::json machine_json;
  if (machine) {
    machine->distances = outcome.distances;
    machine_json = to_json(*machine);
  }
  if (!flags.json.empty()) {
    write_file_atomically(flags.json, row_a_line(document_of(outcome, machine_json)));
  }
  write_csv(flags, outcome.rows);
  if (!flags.raw.empty()) write_file_atomically(flags.raw, bench::kRawHeading + outcome.raw);
  if (!flags.report.empty()) write_report(people, flags.report, outcome, others, machine_json);
}

void require_right(const std::vector<bench::Measurement>& rows) {
  const bench::Measurement* first = nullptr;
  std::size_t wrong = 0;
  for (const bench::Measurement& row : rows) {
    if (row.right()) continue;
    ++wrong;
    if (first == nullptr) first = &row;
  }
  if (wrong == 0) return;
  throw WrongResults(fmt::format(
      "{} of {} rows have wrong results, the first {} of {} bytes over {} ranks: {}; the table has "
      "all of them",
      wrong, rows.size(),
      first->strategy == bench::kOnlyStrategy ? first->collective : first->strategy, first->bytes,
      first->ranks,
      first->wrong > 0 ? fmt::format("{} wrong elements", first->wrong)
                       : std::string("the ranks' results differ")));
}

namespace {

std::string name_in_temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) {
    const auto given = comm::environment_variable("TMPDIR");
    throw FileError(fmt::format("{} is no folder for temporary files: {}; set TMPDIR to one",
                                given.value_or("/tmp"), error.message()));
  }
  return (folder / "ringlet-all-reduce-XXXXXX").string();
}

}  // namespace

RowsFile::RowsFile() : name_(name_in_temporary_folder()) {
  const int descriptor = mkstemp(name_.data());
  if (descriptor < 0) throw FileError(name_ + " cannot be created; is TMPDIR writable?");
  close(descriptor);
  setenv(kRowsVariable, name_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
}

RowsFile::~RowsFile() {
  std::error_code error;
  fs::remove(name_, error);
  fs::remove(raw_beside(name_), error);
  unsetenv(kRowsVariable);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::optional<std::string> RowsFile::given() { return comm::environment_variable(kRowsVariable); }

void RowsFile::write(const std::string& name, const BenchOutcome& outcome) {
  nlohmann::json distances = nlohmann::json::array();
  for (const bench::CoreDistance& distance : outcome.distances) {
    distances.push_back(distance.nanoseconds);
  }
  if (!outcome.raw.empty()) write_file_atomically(raw_beside(name), outcome.raw);
  const nlohmann::json content{{"rows", rows_json(outcome.rows)}, {"distances", distances}};
  write_file_atomically(name, content.dump());
}

void RowsFile::add_to(BenchOutcome& outcome) const {
  const auto rows = bench::read_measurements(name_);
  outcome.rows.insert(outcome.rows.end(), rows.begin(), rows.end());
  const auto content = parse_json(read_text(name_, bench::kMostRowsBytes));
  for (const double ns : content.at("distances")) outcome.distances.push_back({ns});
  if (fs::exists(raw_beside(name_))) {
    constexpr auto kAny = std::uintmax_t{1} << 40;  // a process of our own wrote it
    outcome.raw += read_text(raw_beside(name_), kAny);
  }
}

}  // namespace ringlet::app
