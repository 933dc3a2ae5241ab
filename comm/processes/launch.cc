#include "comm/processes/launch.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "kernels/error.h"

namespace ringlet::comm {

namespace {

/// The variables of one launcher; an empty name: it has none of that kind.
struct Launcher {
  std::string name;
  std::string rank, size, local_rank, local_size;
  std::vector<std::string> run_required;  // together they name the run
  std::vector<std::string> run_optional;
};

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> all = {
      {"ringlet", "RINGLET_PROCESS", "RINGLET_PROCESS_COUNT", "", "", {"RINGLET_RUN"}, {}},
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       {"MASTER_ADDR", "MASTER_PORT"},
       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {},
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}, {"PMI_PORT"}},
      {"Slurm",
       "SLURM_PROCID",
       "SLURM_NTASKS",
       "",
       "",
       {},
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
  };
  return all;
}

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const {
    return name.empty() ? std::nullopt : lookup_(name);
  }
  std::optional<int> number(const std::string& name) const {
    const std::optional<std::string> value = text(name);
    if (!value) return {};
    int number = 0;
    const char* end = value->data() + value->size();
    const auto [stopped, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || stopped != end || number < 0) {
      throw ContractError(fmt::format("{} is '{}', which is not a whole number", name, *value));
    }
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

int required_number(const Environment& environment, const std::string& name,
                    const std::string& beside) {
  if (const std::optional<int> value = environment.number(name)) return *value;
  throw ContractError(fmt::format("{} is set but {} is not; a process needs both", beside, name));
}

void require_place(const Launcher& launcher, const ProcessPlace& place) {
  if (place.processes < 1) throw ContractError(launcher.size + " is 0; there is at least one");
  if (place.process >= place.processes) {
    throw ContractError(fmt::format("{} is {} but {} is {}; it goes from 0 to {}", launcher.rank,
                                    place.process, launcher.size, place.processes,
                                    place.processes - 1));
  }
}

[[noreturn]] void refuse_machines(const std::string& evidence) {
  throw ContractError(fmt::format(
      "processes on several machines are not supported ({}); start all of them on one", evidence));
}

void require_one_machine(const Environment& environment, const Launcher& launcher,
                         const ProcessPlace& place) {
  const std::optional<int> local_size = environment.number(launcher.local_size);
  if (local_size && *local_size < place.processes) {
    refuse_machines(fmt::format("{} is {} but {} is {}", launcher.size, place.processes,
                                launcher.local_size, *local_size));
  }
  if (local_size && *local_size > place.processes) {
    throw ContractError(
        fmt::format("{} is {} but {} is only {}; let one launcher set both, or unset the first",
                    launcher.local_size, *local_size, launcher.size, place.processes));
  }
  const std::optional<int> local_rank = environment.number(launcher.local_rank);
  if (local_rank && *local_rank != place.process) {
    throw ContractError(
        fmt::format("{} is {} but {} is {}; on one machine they are equal: let one launcher set "
                    "both, or unset the first",
                    launcher.local_rank, *local_rank, launcher.rank, place.process));
  }
  if (launcher.name == "Slurm") {
    const std::string name =
        environment.text("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
    const std::optional<int> nodes = environment.number(name);
    if (nodes && *nodes > 1) refuse_machines(fmt::format("{} is {}", name, *nodes));
  }
}

std::string run_of(const Environment& environment, const Launcher& launcher) {
  std::string run = launcher.name;
  for (const std::string& name : launcher.run_required) {
    const std::optional<std::string> value = environment.text(name);
    if (!value || value->empty()) {
      throw ContractError(
          fmt::format("{} and {} are set but {} is not; all processes of a run need the same one",
                      launcher.rank, launcher.size, name));
    }
    run += fmt::format(" {}={}", name, *value);
  }
  for (const std::string& name : launcher.run_optional) {
    if (const auto value = environment.text(name)) run += fmt::format(" {}={}", name, *value);
  }
  return run;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): never written
  if (value == nullptr) return {};
  return value;
}

std::optional<ProcessPlace> place_from_environment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  for (const Launcher& launcher : launchers()) {
    if (!environment.text(launcher.rank) && !environment.text(launcher.size)) continue;
    ProcessPlace place;
    place.launcher = launcher.name;
    place.process = required_number(environment, launcher.rank, launcher.size);
    place.processes = required_number(environment, launcher.size, launcher.rank);
    require_place(launcher, place);
    require_one_machine(environment, launcher, place);
    place.run = run_of(environment, launcher);
    return place;
  }
  return {};
}

int first_device(const ProcessPlace& place, int replicas, int visible) {
  const int first = place.process * replicas;  // all processes are on this machine
  return visible > 0 ? first % visible : first;
}

}  // namespace ringlet::comm
