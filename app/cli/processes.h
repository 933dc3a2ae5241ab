// --processes: runs a command's work in one or in several processes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/cli/error_exit.h"
#include "app/cli/flags.h"
#include "base/error.h"
#include "comm/core/group.h"
#include "comm/processes/launch.h"
#include "comm/processes/plan_check.h"

namespace ringlet::app {

/// Ends this process quietly, with `code()`: the user has been told why.
class Told : public Error {
 public:
  Told(const std::string& by, int code) : Error(by + " says why"), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// Another process has failed and shows its error.
class ToldElsewhere : public Told {
 public:
  ToldElsewhere() : Told("another process", kFailed) {}
};

/// start_processes() as a launcher (ProcessPosition::launcher).
inline constexpr const char* kOurselves = "ringlet";

/// What a command does in each process, with a rank for each device. Returns the exit code.
using ProcessBody = std::function<int(comm::Group& group)>;

/// A command's action, which runs `body` as --processes asks for:
///   not given   here, where all ranks are
///   N           in N processes of this program that are started for it, which end before the
///               action does; `body` runs in them, not here
///   alone       here, as the process that the launcher's environment says
/// It throws UsageError where the environment says nothing or nonsense, and ToldElsewhere.
std::function<int()> in_processes(std::shared_ptr<const RawFlags> flags, ProcessBody body);

/// Throws UsageError where no launcher has started this process, but Slurm has given it nodes: in
/// the script of sbatch and salloc's shell, which have to say srun.
void refuse_beside_srun();

/// Runs `body` here, as the process at `position`, and returns the exit code. A wish to stop that
/// one of the processes hears of is noted in all (signals.h). `early`: what has to be equal in all
/// of them beside the command and `execution`, before they can compare the rest. Throws
/// ToldElsewhere.
int run_as_process(const comm::ProcessPosition& position, const train::Execution& execution,
                   const ProcessBody& body, const comm::Plan& early = {});

/// The signal that was noted in this process, or, first, in another one: ranks agree to stop by
/// what they send each other, and may do so before all processes have heard of the wish. All
/// processes of the group call it.
int stop_signal(comm::Group& group);

/// "train", "bench train": what remember_command_line() has been given, without its flags.
std::string command_in_words();

/// To be called first in main(), for start_processes().
void remember_command_line(int argc, char** argv);

/// Starts this program `count` times with its own command line, each with RINGLET_PROCESS,
/// RINGLET_PROCESS_COUNT and RINGLET_RUN set, and waits for all of them.
///   - They die with this process, whatever kills it.
///   - Signals that ask to stop (signals.h) are passed on to them.
///   - After one has failed, those that do not end within seconds are killed.
/// To be called while the process has one thread. Returns the exit code of the worst end, or 128 +
/// n where signal n ended all. Throws CommError where no process is left to say why they ended.
int start_processes(int count);

/// Name of a process's part of a file that each process writes a part of: of "trace.json", in
/// process 2, "trace.p2.json".
std::filesystem::path file_of_process(const std::filesystem::path& file, int process);

/// A line that says where the timeline lies (those of all processes, if `in_processes`), and what
/// opens it.
std::string where_traces_are(const std::filesystem::path& file, bool in_processes);

}  // namespace ringlet::app
