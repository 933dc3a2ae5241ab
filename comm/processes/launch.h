// Which of the processes of a run this one is, read from the environment that its launcher has set.
//
// Looked up in this order; the first launcher whose rank or size is set counts:
//   ringlet      RINGLET_PROCESS, RINGLET_PROCESS_COUNT, RINGLET_RUN (`--processes N` sets them)
//   torchrun     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
//                TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT; also whoever sets the first two
//                and the address by hand
//   Open MPI     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//   PMI          PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (MPICH, Intel MPI)
//   Slurm        SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NUM_NODES or SLURM_NNODES
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ringlet::comm {

/// A launcher's "rank" is a process here: each may hold several replicas, which are our ranks.
struct ProcessPlace {
  int process = 0;    ///< 0 <= process < processes
  int processes = 1;  ///< all on this machine
  /// The same text in all processes of a run, another one in every other run of this user.
  std::string run;
  std::string launcher;  ///< its name, for messages
};

/// The value of an environment variable; nothing where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The lookup in this process's own environment.
std::optional<std::string> environment_variable(const std::string& name);

/// The place that the environment gives, or nothing where no launcher has set one. Throws
/// ContractError, naming the variable, for a value that is missing, no number, or contradicts
/// another one, and for processes on several machines.
std::optional<ProcessPlace> place_from_environment(
    const EnvironmentLookup& lookup = environment_variable);

/// The first device of a process of `replicas`, of `visible` that it sees: the processes take them
/// in turn, and begin anew behind the last. So each process finds its own also where a launcher
/// shows it no others. `visible` 0: not known, so nobody begins anew.
int first_device(const ProcessPlace& place, int replicas, int visible);

}  // namespace ringlet::comm
