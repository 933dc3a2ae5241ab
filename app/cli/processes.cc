#include "app/cli/processes.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "app/cli/before_meeting.h"
#include "app/cli/error_exit.h"
#include "app/cli/family_board.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "base/machine.h"
#include "base/stop_request.h"
#include "comm/process_group.h"
#include "train/recipe/version.h"
#include "train/reports/failure.h"
#include "train/sync/transport_choice.h"
#include "train/trainer.h"

namespace ringlet::app {

namespace {

/// The position in the environment, if it is meant for this run. Nothing: N processes are to be
/// started.
std::optional<comm::ProcessPosition> position_of(const RawFlags& flags) {
  auto position = checked([] { return comm::position_from_environment(); });
  if (position && position->launcher == kOurselves) return position;
  if (!flags.processes) {
    if (position) return position;
    refuse_beside_srun();
    throw UsageError(
        "--processes without a number takes its place from torchrun, mpirun or srun, or from RANK, "
        "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and none of these is set; --processes N starts N "
        "processes");
  }
  if (position && position->processes > 1) {
    throw UsageError(fmt::format(
        "--processes {} would start {} in each of {}'s {} processes; write --processes without a "
        "number to be one of them",
        *flags.processes, *flags.processes, position->launcher, position->processes));
  }
  return {};
}

/// "trace.p2.json"
std::filesystem::path file_of(const std::filesystem::path& file, const std::string& process) {
  return std::filesystem::path(file).replace_filename(
      fmt::format("{}.p{}{}", file.stem().string(), process, file.extension().string()));
}

/// What must be equal in all processes before anything else is looked at. Where each machine may
/// have a program of its own, it has to be the same one.
/// With what decides which exchanges come before the plans are compared: where that is unlike, one
/// waits for what another never sends.
comm::Plan agreed_by(const comm::ProcessPosition& position, const train::Execution& execution,
                     const comm::Plan& early) {
  comm::Plan plan{{"ringlet's version", train::kVersion}, {"the command", command_in_words()}};
  if (position.hub) plan.emplace_back("the build of the program", build_id());
  plan.emplace_back("--stages", execution.stages);
  plan.emplace_back("--balance", execution.measures_stages ? "measured" : "planned");
  plan.insert(plan.end(), early.begin(), early.end());
  return plan;
}

/// The same of the flags that `execution` does not have.
comm::Plan early_choices(const RawFlags& flags) {
  const auto given = [](bool is_given) { return is_given ? "given" : "not given"; };
  const train::Files& files = flags.options.files;
  const auto passes = given_or<std::int64_t>(flags, "accumulate", 0);
  return {{"--resume", given(!files.resume.empty())},
          {"--init", given(!files.init.empty())},
          {"--precision", leaves_precision_open(flags) ? "auto" : "no auto"},
          {"--micro-batches", passes > 0 ? std::to_string(passes) : given(false)}};
}

/// What the others hear of a process that ends because it was asked to, between two steps of the
/// work that all have to make.
std::string stopped_by(int signal) { return fmt::format("stopped by signal {}", signal); }

/// The signal in such a text, or 0.
int signal_in(const std::string& text) {
  for (const int signal : kStopSignals) {
    if (text == stopped_by(signal)) return signal;
  }
  return 0;
}

/// stop_signal() where another process may have ended the run already.
int stop_signal_at_end(comm::Group& group) {
  try {
    return stop_signal(group);
  } catch (const Error&) {  // then it has said why to all
    return noted_signal();
  }
}

/// Ends the other processes. Returns the exit code where one of them was asked to stop. Else throws
/// the error that this process shall show, or ToldElsewhere.
int end_with_failure(comm::ProcessGroup& group) {
  const std::exception_ptr failure = std::current_exception();
  std::string message = message_of_current_exception();
  try {
    throw;
  } catch (const Stopped&) {
    message = stopped_by(stop_signal_at_end(group));
  } catch (...) {  // it has its message
  }
  group.abort(group.first_rank(), message);
  const bool tells = group.tells_user();
  const std::optional<comm::RootCause> cause = group.rendezvous().root_cause();
  if (const int signal = cause ? signal_in(cause->message) : 0; signal != 0) {
    return kInterrupted + signal;
  }
  if (!tells) throw ToldElsewhere();
  if (cause && !group.holds(cause->rank)) throw comm::CommError(cause->message);  // of the dead
  std::rethrow_exception(failure);
}

void warn_of_launcher() {
  const std::string warning = comm::warning_of_launcher();
  if (!warning.empty()) print_warning(warning);
}

}  // namespace

int stop_signal(comm::Group& group) {
  constexpr double kPatience = 5;  // seconds; all processes come here together
  std::optional<std::string> mine;
  if (const int noted = noted_signal(); noted != 0) mine = std::to_string(noted);
  return std::stoi(group.agree("stop signal", mine, kPatience));
}

void refuse_beside_srun() {
  if (!comm::environment_variable("SLURM_JOB_ID")) return;
  throw UsageError(
      "Slurm has a job here but srun did not start this process (SLURM_STEP_ID is not set); write "
      "srun before the command: it starts one process for each task");
}

int run_as_process(const comm::ProcessPosition& position, const train::Execution& execution,
                   const ProcessBody& body, const comm::Plan& early) {
  FamilyBoard* const board = FamilyBoard::inherited();
  comm::ProcessGroupOptions options{.replicas = static_cast<int>(execution.devices.size()),
                                    .timeout_seconds = execution.comm_timeout,
                                    .agreed = agreed_by(position, execution, early),
                                    .transport = train::process_transport(execution),
                                    .warn = print_warning,
                                    .on_wish = note_stop};
  if (board != nullptr) {
    options.on_names = [&](const std::string& own) { board->note_ranks(position.process, own); };
  }
  std::optional<comm::ProcessGroup> group;
  try {
    group.emplace(position, options);
  } catch (const comm::Aborted&) {
    throw ToldElsewhere();
  }
  if (board != nullptr) board->note_all_came();
  note_stop_signals();
  const StopWatcher watcher([&group](int signal) { group->tell_wish(signal); });
  try {
    const int code = body(*group);
    group->leave();
    return code;
  } catch (...) {
    return end_with_failure(*group);
  }
}

std::function<int()> in_processes(std::shared_ptr<const RawFlags> flags, ProcessBody body) {
  return [flags = std::move(flags), body = std::move(body)] {
    const auto position = flags->in_processes ? position_of(*flags) : std::nullopt;
    // What is wrong with the flags is said here, once. `body` resolves them again, with a resumed
    // run's recipe, and must come to the transport of this group. It does: the recipe reaches the
    // transport only by --sync's default, auto or doubling, which all transports carry.
    const train::Execution execution =
        before_meeting(position, [&] { return resolve(*flags).execution; });
    if (position) return run_as_process(*position, execution, body, early_choices(*flags));
    if (flags->processes.value_or(1) > 1) return start_processes(*flags->processes);
    note_stop_signals();
    if (!flags->in_processes) warn_of_launcher();
    comm::LocalGroup group = train::threads_of(execution);
    return body(group);
  };
}

std::filesystem::path file_of_process(const std::filesystem::path& file, int process) {
  return process == 0 ? file : file_of(file, std::to_string(process));
}

std::string where_traces_are(const std::filesystem::path& file, bool in_processes) {
  const std::string own = file.string(), others = file_of(file, "N").string();
  return fmt::format(
      "wrote {}{}; https://ui.perfetto.dev opens it, 'ringlet inspect {}' sums it up\n{}", own,
      in_processes ? fmt::format(" (process N > 0: {})", others) : "", own,
      in_processes ? "'ringlet trace merge' makes one of all, on one clock\n" : "");
}

}  // namespace ringlet::app
