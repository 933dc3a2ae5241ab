// What tells a run from every other run of the same user, in the words of its launcher.
//
// All processes of a run have the same name, so it is made only of what they share. On one machine
// that is also what no other machine could know: who started them there.
//
//   ringlet      RINGLET_RUN, which `--processes N` draws at random
//   torchrun     MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT; and the
//                job, where a batch system has started it (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID).
//                So two runs by hand at once need ports of their own, or a RINGLET_RUN each
//   Open MPI     PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid. They follow from mpirun's number and
//                host, which two containers may share; so the job's secret counts too, as a
//                fingerprint
//   PMI          PMI_PORT, PMI_JOBID, FLUX_JOB_ID, and the process that made the socket PMI_FD: the
//                launcher's, of which there is one for each job on a machine. The kernel knows it,
//                so nobody has to ask PMI's server, which may be slow or absent
//   Slurm        SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT
//
// RINGLET_RUN=NAME, the same for all processes, is a part of it under each of them.
//
// Where the processes meet over TCP, what may differ from machine to machine is left out, and so is
// MASTER_ADDR: who meets there has the same address, by whatever name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/processes/environment.h"

namespace ringlet::comm {

/// The variables of one launcher that name a run.
struct RunVariables {
  std::vector<std::string> required;
  std::vector<std::string> optional;  ///< the same on all machines
  std::vector<std::string> local;     ///< may be another one on each machine
  std::string secret{};               ///< random, the same for all processes
  std::string socket{};               ///< the number of a socket that the launcher has made
};

/// The longest value of a variable that names a run or its token, in bytes.
inline constexpr std::size_t kLongestName = 1024;

/// Throws ContractError, naming the variable, for one that is missing or too long. `beside` are the
/// launcher's rank and size, for the message.
std::string run_name(const Environment& environment, const std::string& launcher,
                     const RunVariables& variables, const std::string& beside, bool over_tcp);

/// The variable's value; "" where it is not set. Throws ContractError where it is too long.
std::string short_value(const Environment& environment, const std::string& name);

}  // namespace ringlet::comm
