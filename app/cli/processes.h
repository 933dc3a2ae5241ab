// --processes: runs a command's work in one or in several processes.
#pragma once

#include <filesystem>
#include <functional>

#include "app/cli/flags.h"
#include "comm/processes/process_group.h"
#include "kernels/error.h"

namespace ringlet::app {

/// Ends this process quietly: another process has failed and shows its error.
class ToldElsewhere : public Error {
 public:
  ToldElsewhere() : Error("another process failed and says why") {}
};

/// Runs `body` as --processes asks for and returns the exit code:
///   not given   here; `body` gets null
///   N           in N processes of this program that are started for it, which end before the call
///               returns; `body` runs in them, not here
///   alone       here, as the process that the launcher's environment says; `body` gets its group
/// Throws UsageError where the environment says nothing or nonsense, and ToldElsewhere.
int run_in_processes(const RawFlags& flags,
                     const std::function<int(comm::ProcessGroup* processes)>& body);

/// Runs `body` here, as the process at `place`, and returns the exit code. Throws ToldElsewhere.
int run_as_process(const comm::ProcessPlace& place, const train::Execution& execution,
                   const std::function<int(comm::ProcessGroup* processes)>& body);

/// Name of this process's part of a file that each process writes a part of: of "trace.json", in
/// process 2, "trace.p2.json". `processes` may be null.
std::filesystem::path file_of_process(const std::filesystem::path& file,
                                      const comm::ProcessGroup* processes);

/// Ranks in the whole world: one a device, in each of the processes.
int ranks_of(const train::Execution& execution, const comm::ProcessGroup* processes);

}  // namespace ringlet::app
