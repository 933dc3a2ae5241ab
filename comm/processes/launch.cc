#include "comm/processes/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/processes/run_name.h"

namespace ringlet::comm {

namespace {

/// The variables of one launcher; an empty name: it has none of that kind.
struct Launcher {
  std::string name;
  std::string rank, size, local_rank, local_size;
  RunVariables run;
};

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> all = {
      {"ringlet",
       "RINGLET_PROCESS",
       "RINGLET_PROCESS_COUNT",
       "",
       "",
       {.required = {"RINGLET_RUN"}, .optional = {}, .local = {}}},
      // Each of torchrun's agents counts its own restarts, and counts none where another machine's
      // agent was the first to see the failure.
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_RANK",
       "LOCAL_WORLD_SIZE",
       {.required = {"MASTER_ADDR", "MASTER_PORT"},
        .optional = {"TORCHELASTIC_RUN_ID"},
        .local = {"TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {.required = {},
        .optional = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
        .local = {},
        .secret = "OMPI_MCA_orte_precondition_transports"}},
      {"PMI",
       "PMI_RANK",
       "PMI_SIZE",
       "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS",
       {.required = {},
        .optional = {"PMI_JOBID", "FLUX_JOB_ID"},
        .local = {"PMI_PORT"},
        .socket = "PMI_FD"}},
      {"Slurm",
       "SLURM_PROCID",
       "SLURM_STEP_NUM_TASKS",
       "",
       "",
       {.required = {},
        .optional = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
        .local = {}}},
  };
  return all;
}

int required_number(const Environment& environment, const std::string& name,
                    const std::string& beside) {
  if (const std::optional<int> value = environment.number(name)) return *value;
  throw ContractError(fmt::format("{} is set but {} is not; a process needs both", beside, name));
}

void require_position(const Launcher& launcher, const ProcessPosition& position) {
  if (position.processes < 1) throw ContractError(launcher.size + " is 0; there is at least one");
  if (position.process >= position.processes) {
    throw ContractError(fmt::format("{} is {} but {} is {}; it goes from 0 to {}", launcher.rank,
                                    position.process, launcher.size, position.processes,
                                    position.processes - 1));
  }
}

/// What says that the processes are on several machines, in words; empty where nothing does.
std::string several_machines(const Environment& environment, const Launcher& launcher,
                             const ProcessPosition& position) {
  const std::optional<int> local_size = environment.number(launcher.local_size);
  if (local_size && *local_size < position.processes) {
    return fmt::format("{} is {} but {} is {}", launcher.size, position.processes,
                       launcher.local_size, *local_size);
  }
  if (launcher.name == "Slurm") {
    const std::string name =
        environment.text("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
    const std::optional<int> nodes = environment.number(name);
    if (nodes && *nodes > 1) return fmt::format("{} is {}", name, *nodes);
  }
  return {};
}

void require_local_position(const Environment& environment, const Launcher& launcher,
                            const ProcessPosition& position) {
  const std::optional<int> local_size = environment.number(launcher.local_size);
  const std::optional<int> local_rank = environment.number(launcher.local_rank);
  if (local_size && *local_size > position.processes) {
    throw ContractError(
        fmt::format("{} is {} but {} is only {}; let one launcher set both, or unset the first",
                    launcher.local_size, *local_size, launcher.size, position.processes));
  }
  if (local_size && local_rank && *local_rank >= *local_size) {
    throw ContractError(fmt::format("{} is {} but {} is {}; it goes from 0 to {}",
                                    launcher.local_rank, *local_rank, launcher.local_size,
                                    *local_size, *local_size - 1));
  }
  if (!position.hub && local_rank && *local_rank != position.process) {
    throw ContractError(
        fmt::format("{} is {} but {} is {}; on one machine they are equal: let one launcher set "
                    "both, or unset the first",
                    launcher.local_rank, *local_rank, launcher.rank, position.process));
  }
}

/// Throws ContractError for what stands for all addresses of a machine: nobody is found there.
void require_one_address(const std::string& host, const std::string& variable) {
  if (host != "0.0.0.0" && host != "0" && host != "::" && host != "::0") return;
  throw ContractError(
      fmt::format("{} is '{}', which stands for all addresses of a machine; name the one at which "
                  "the others reach the machine of process 0, or localhost where all are on one",
                  variable, host));
}

TcpAddress hub_variable(const std::string& value) {
  if (const std::optional<TcpAddress> address = parse_address(value)) {
    require_one_address(address->host, "RINGLET_HUB's host");
    return *address;
  }
  throw ContractError(
      fmt::format("RINGLET_HUB is '{}', which is not HOST:PORT, the address of the machine that "
                  "process 0 runs on and a port that is free there",
                  value));
}

/// The address that launchers of PyTorch's kind give, or nothing where they give none.
std::optional<TcpAddress> master_address(const Environment& environment) {
  const std::optional<std::string> host = environment.text("MASTER_ADDR");
  const std::optional<std::string> port = environment.text("MASTER_PORT");
  if (!host || !port || host->empty()) return {};
  require_one_address(*host, "MASTER_ADDR");
  const bool is_taken = environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const std::optional<int> number = parse_port(*port);
  if (!number || (is_taken && !parse_port(std::to_string(*number + 1)))) {
    throw ContractError(fmt::format(
        "MASTER_PORT is '{}', which is no port from 1 to {}, and the processes are on several "
        "machines",
        *port, is_taken ? "65534" : "65535"));
  }
  return TcpAddress{*host, *number + (is_taken ? 1 : 0)};
}

/// The first host of Slurm's list: "gpu[07-09,12],big1" begins with gpu07. Empty where it is none.
std::string first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const std::size_t bracket = std::min(list.find_first_of("[,"), list.size());
    host += list.substr(0, bracket);
    list.remove_prefix(bracket);
    if (list.empty() || list.front() == ',') break;
    const std::size_t close = list.find(']');
    if (close == std::string_view::npos) return {};
    const std::string_view numbers = list.substr(1, close - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    list.remove_prefix(close + 1);
  }
  return host;
}

/// The address that follows from the names of srun's step alone: its process 0 is on the first of
/// its nodes. The port is below those that the kernel hands out. Jobs of one time have other ports,
/// as have steps of a job. Nothing where a name is missing.
std::optional<TcpAddress> step_address(const Environment& environment) {
  const std::string host = first_host(environment.text("SLURM_STEP_NODELIST").value_or(""));
  const std::optional<int> job = environment.number("SLURM_JOB_ID");
  const std::optional<int> step = environment.number("SLURM_STEP_ID");
  if (host.empty() || !job || !step) return {};
  constexpr int kFirstPort = 20000, kPorts = 10000, kBetweenSteps = 1009;
  const int offset = (*job % kPorts + *step % kPorts * kBetweenSteps) % kPorts;
  return TcpAddress{host, kFirstPort + offset};
}

/// Where the processes meet over TCP; nothing where all are on one machine.
std::optional<TcpAddress> hub_of(const Environment& environment, const Launcher& launcher,
                                 const ProcessPosition& position, const std::string& evidence) {
  if (launcher.name == "ringlet" || position.processes == 1) return {};
  if (const auto hub = environment.text("RINGLET_HUB"); hub && !hub->empty()) {
    return hub_variable(*hub);
  }
  const bool says_local = environment.number(launcher.local_size).has_value();
  const bool by_hand = launcher.name == "torchrun" && !says_local &&
                       !is_loopback(environment.text("MASTER_ADDR").value_or("localhost"));
  if (evidence.empty() && !by_hand) return {};
  if (auto address = master_address(environment)) return address;
  if (launcher.name == "Slurm") {
    if (auto address = step_address(environment)) return address;
  }
  if (by_hand) return {};  // what is missing is said of the run's name
  throw ContractError(
      fmt::format("processes on several machines need an address to meet at ({}); set "
                  "RINGLET_HUB=HOST:PORT for all of them, with the machine of process 0 and a port "
                  "that is free there",
                  evidence));
}

/// Whether srun has set PMI's variables. Its own say more then: which machines there are. They are
/// also there where another launcher has started its helpers with srun, but name other processes.
bool is_pmi_of_srun(const Environment& environment) {
  const auto job = environment.text("SLURM_JOB_ID"), step = environment.text("SLURM_STEP_ID");
  return job && step && environment.text("PMI_JOBID") == *job + "." + *step &&
         environment.text("PMI_SIZE") == environment.text("SLURM_STEP_NUM_TASKS");
}

/// What all processes have to know: what the user has set, or else a secret of the launcher's.
std::string token_of(const Environment& environment, const Launcher& launcher) {
  if (!environment.text("RINGLET_TOKEN")) return short_value(environment, launcher.run.secret);
  std::string token = short_value(environment, "RINGLET_TOKEN");
  if (!token.empty()) return token;
  throw ContractError(
      "RINGLET_TOKEN is empty, and anybody knows that; give it a value or unset it");
}

/// Whether the launcher has started this process.
bool has_started_us(const Environment& environment, const Launcher& launcher) {
  if (launcher.name == "PMI" && is_pmi_of_srun(environment)) return false;
  // A script of sbatch and a shell of salloc have some of srun's variables, but are one process.
  if (launcher.name == "Slurm" && !environment.text("SLURM_STEP_ID")) return false;
  return environment.text(launcher.rank) || environment.text(launcher.size);
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): never written
  if (value == nullptr) return {};
  return value;
}

std::optional<ProcessPosition> position_from_environment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  for (const Launcher& launcher : launchers()) {
    if (!has_started_us(environment, launcher)) continue;
    ProcessPosition position;
    position.launcher = launcher.name;
    position.process = required_number(environment, launcher.rank, launcher.size);
    position.processes = required_number(environment, launcher.size, launcher.rank);
    require_position(launcher, position);
    const std::string evidence = several_machines(environment, launcher, position);
    position.spread = !evidence.empty();
    position.hub = hub_of(environment, launcher, position, evidence);
    position.token = token_of(environment, launcher);
    require_local_position(environment, launcher, position);
    const bool is_slurm = launcher.name == "Slurm";
    position.local_process =
        environment.number(is_slurm ? "SLURM_LOCALID" : launcher.local_rank).value_or(-1);
    position.run = run_name(environment, launcher.name, launcher.run,
                            launcher.rank + " and " + launcher.size, position.hub.has_value());
    return position;
  }
  return {};
}

std::string warning_of_launcher(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  for (const Launcher& launcher : launchers()) {
    if (!has_started_us(environment, launcher)) continue;
    try {
      const int processes = environment.number(launcher.size).value_or(1);
      if (processes < 2 || environment.number(launcher.rank).value_or(0) != 0) return {};
      return fmt::format(
          "{} has started {} processes ({}), and without --processes each of them does all the "
          "work for itself; add --processes, and they share it",
          launcher.name, processes, launcher.size);
    } catch (const ContractError&) {  // who asks for no position need not have one
      return {};
    }
  }
  return {};
}

int first_device(const ProcessPosition& position, int replicas, int visible) {
  const bool spread = position.hub && position.local_process >= 0;
  const int first = (spread ? position.local_process : position.process) * replicas;
  return visible > 0 ? first % visible : first;
}

}  // namespace ringlet::comm
