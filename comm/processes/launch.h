// Which of the processes of a run this one is, read from the environment that its launcher has set.
//
// Looked up in this order; the first launcher whose rank or size is set counts:
//   ringlet      RINGLET_PROCESS, RINGLET_PROCESS_COUNT, RINGLET_RUN (`--processes N` sets them)
//   torchrun     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
//                TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT; also whoever sets the first two
//                and the address by hand
//   Open MPI     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//   PMI          PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (MPICH, Intel MPI)
//   Slurm        SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_NUM_NODES or
//                SLURM_NNODES; where SLURM_STEP_ID is set, since only srun starts several
//                processes. They count before those of PMI that srun itself has set
//                (srun --mpi=pmi2)
//
// Processes on one machine meet under the run's name (run_name.h). They meet over TCP where the
// launcher says that it has spread them, where MASTER_ADDR is no loopback and nothing says that all
// are on one machine, and wherever RINGLET_HUB is set. The address is
//   RINGLET_HUB=HOST:PORT
//   MASTER_ADDR and MASTER_PORT, or the next port where TORCHELASTIC_USE_AGENT_STORE is True:
//     torchrun's agent listens on the first one itself
//   under srun, the first host of SLURM_STEP_NODELIST and a port that follows from SLURM_JOB_ID and
//     SLURM_STEP_ID
// RINGLET_TOKEN, the same for all, keeps others out. Without it, what the launcher hands all of its
// processes and nobody else serves: Open MPI's OMPI_MCA_orte_precondition_transports, random digits
// that mpirun draws for each job. The other launchers hand out names and numbers alone.
#pragma once

#include <optional>
#include <string>

#include "comm/processes/environment.h"
#include "comm/processes/tcp_address.h"

namespace ringlet::comm {

/// A launcher's "rank" is a process here: each may hold several replicas, which are our ranks.
struct ProcessPosition {
  int process = 0;    ///< 0 <= process < processes
  int processes = 1;  ///< of the run, on all machines
  /// The same text in all processes of a run, another one in every other run of this user.
  std::string run;
  std::string launcher;  ///< its name, for messages
  /// Where process 0 serves the others. Nothing: all are on this machine, and meet under the run's
  /// name.
  std::optional<TcpAddress> hub{};
  bool spread = false;     ///< the launcher says that they are on several machines
  std::string token{};     ///< what all must know to be let in over TCP; may be empty
  int local_process = -1;  ///< number among those on its machine; negative: `process`
};

/// The lookup in this process's own environment.
std::optional<std::string> environment_variable(const std::string& name);

/// The position that the environment gives, or nothing where no launcher has set one. Throws
/// ContractError, naming the variable, for a value that is missing, no number, or contradicts
/// another one, and for processes on several machines without an address to meet at.
std::optional<ProcessPosition> position_from_environment(
    const EnvironmentLookup& lookup = environment_variable);

/// For a process that takes no part in a run of several: what its user should know where a launcher
/// has started several, each of which then does all the work for itself. Said by process 0 alone;
/// empty for the others, and where there is nothing to tell.
std::string warning_of_launcher(const EnvironmentLookup& lookup = environment_variable);

/// The first device of a process of `replicas`, of `visible` that it sees: the processes take them
/// in turn, and begin anew behind the last. So each process finds its own also where a launcher
/// shows it no others. `visible` 0: not known, so nobody begins anew.
int first_device(const ProcessPosition& position, int replicas, int visible);

}  // namespace ringlet::comm
