#include "app/commands/exact_bytes.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/error_exit.h"
#include "app/cli/version.h"
#include "app/report/run_folder.h"
#include "base/files/atomic_file.h"
#include "train/telemetry/arithmetic.h"

namespace ringlet::app {

namespace {

using train::Arithmetic;

/// How the run in `folder` was computed so far. Empty where it does not say, as runs of earlier
/// versions; where both used GPUs, `now`: which ones is not compared.
Arithmetic arithmetic_of_run(const std::filesystem::path& folder, const Arithmetic& now) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / "run.json", error)) return {};
  try {
    const report::RunFacts facts = report::read_facts(folder);
    const std::string gpus = facts.gpus();
    if (!gpus.empty()) return now.gpus.empty() ? Arithmetic{.gpus = gpus} : now;
    return {.instruction_set = facts.text("/machine/cpu/instruction_set"),
            .openblas = facts.text("/machine/cpu/openblas"),
            .compiler = facts.text("/build/compiler")};
  } catch (const FileError&) {  // it explains a run; going on does not need it
    return {};
  }
}

void warn(const std::string& warning) {
  if (!warning.empty()) print_warning(warning);
}

}  // namespace

void warn_of_other_bytes(comm::Group& group, const train::TrainOptions& options) {
  if (!options.recipe.exact) return;
  const Arithmetic here = train::arithmetic_here(options.execution, options.recipe.precision,
                                                 build_facts()["compiler"]);
  std::vector<Arithmetic> of_process;
  for (int process = 0; process < group.processes(); ++process) {
    const bool own = process == group.process();
    of_process.push_back(train::arithmetic_of(group.agree(
        fmt::format("arithmetic of process {}", process),
        own ? std::optional(train::to_text(here)) : std::nullopt, options.execution.comm_timeout)));
  }
  if (group.process() != 0) return;
  warn(train::warning_of_unlike(of_process));
  if (const auto& run = options.files.resume; !run.empty()) {
    if (const Arithmetic before = arithmetic_of_run(run, here); before != Arithmetic{}) {
      warn(train::warning_of_change(before, here));
    }
  }
}

}  // namespace ringlet::app
