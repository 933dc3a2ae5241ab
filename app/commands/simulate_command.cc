// ringlet simulate
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/outputs.h"
#include "app/cli/processes.h"
#include "app/cli/usage.h"
#include "app/commands/simulate_flags.h"
#include "app/report/simulation_page.h"
#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "bench/all_reduce/machine.h"
#include "bench/simulation/played_trace.h"

namespace ringlet::app {

namespace {

void check_outputs(const SimulateFlags& flags, const CLI::App& command) {
  Outputs outputs(command, flags.force);
  outputs.reads("--from", flags.from);
  outputs.reads("--measured", flags.measured);
  outputs.writes("--json", flags.json);
  outputs.writes("--trace", flags.trace);
  outputs.writes("--report", flags.report);
}

void set_measured(const SimulateFlags& flags, const std::vector<bench::Measurement>& measured,
                  std::vector<bench::Simulated>& rows) {
  if (flags.measured.empty()) return;
  const nlohmann::json machine = bench::read_machine(flags.measured);
  const int cores = machine.is_object() ? machine.value("cores", 0) : 0;
  if (bench::set_measured(rows, measured, cores) > 0) return;
  throw UsageError(fmt::format(
      "--measured {} has none of these: sums of f32 in place, of that many ranks, machines and "
      "bytes",
      flags.measured.string()));
}

void write_trace(const std::filesystem::path& file, const bench::Simulation& simulation,
                 const bench::Costs& costs, const std::vector<bench::StepSpec>& steps) {
  train::TraceWriter trace(0);
  if (bench::add_played(trace, simulation, costs, steps) == 0) {
    throw UsageError("--trace has nothing to show: none of these strategies can be played there");
  }
  trace.write(file);
  fmt::print("\n{}", where_traces_are(file, false));
}

int simulate(const SimulateFlags& flags, const CLI::App& command) {
  check_outputs(flags, command);
  std::vector<bench::Measurement> measured;
  if (!flags.measured.empty()) measured = bench::read_measurements(flags.measured);
  const bench::Costs costs = costs_of(flags);
  const std::vector<bench::StepSpec> specs = steps_of(flags);
  const bench::Simulation simulation = simulation_of(flags, costs, measured);
  std::vector<bench::Simulated> rows = bench::simulate(simulation, costs);
  set_measured(flags, measured, rows);
  fmt::print("{}", to_text(rows, costs));
  nlohmann::json json = to_json(rows);
  std::vector<bench::SimulatedStep> steps;
  for (const bench::StepSpec& spec : specs) {
    const auto of_spec = simulate_step(simulation, spec, costs);
    fmt::print("{}", to_text(of_spec, spec));
    for (auto& step : to_json(of_spec)) json["steps"].push_back(std::move(step));
    steps.insert(steps.end(), of_spec.begin(), of_spec.end());
  }
  if (!flags.json.empty()) write_file_atomically(flags.json, row_a_line(json));
  if (!flags.trace.empty()) write_trace(flags.trace, simulation, costs, specs);
  if (!flags.report.empty()) {
    write_file_atomically(flags.report,
                          report::simulation_page(simulation, costs, rows, flags.step, steps));
    fmt::print("\nwrote {}; open it in a browser\n", on_one_line(flags.report.string()));
  }
  return 0;
}

}  // namespace

void add_simulate_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = app.add_subcommand(
      "simulate", "play all-reduce strategies on machines that are not there, of up to 4096 ranks");
  add_simulate_flags(*command, *flags);
  command->callback([flags, command, &action] {
    note_step_flags(*command, *flags);
    action = [=] { return simulate(*flags, *command); };
  });
}

}  // namespace ringlet::app
