// Signals as requests to stop. A signal handler can only reach a global, so there is one.
//
//   SIGINT, SIGTERM     Ctrl-C, and the end of a service, a container or a job
//   SIGHUP              the terminal, or the connection to it, is gone
//   SIGUSR1, SIGUSR2    a batch system tells that the job's time is nearly over
//   SIGXCPU             so does the system, of a limit on the processor's time; once a second
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <thread>

namespace ringlet::app {

inline constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

/// Whether this process ignores `signal`. It does from its start where a shell has put it into the
/// background, or nohup has started it.
bool ignores(int signal);

/// Gives kStopSignals the meaning with which the program was started, whatever libraries have made
/// of them since. At the beginning of main().
void take_signals_back();

/// From now on the first of kStopSignals is only noted. Those that are ignored stay so. A second
/// SIGINT or SIGTERM ends the process at once; the others repeat what is known. Those within a
/// second after the first one count as the first: launchers pass on a signal that the terminal has
/// already sent, and timeout(1) signals its child and then the child's process group.
void note_stop_signals();

/// Makes writing beyond the process's limit on file sizes (ulimit -f) fail with an error that names
/// the file, as on a full disk. By default the process would be killed.
void fail_writes_beyond_limit();

/// Notes a wish to stop as if `signal` had come, unless one has. Any thread.
void note_stop(int signal);

/// The signal that was noted, or 0. Any thread.
int noted_signal();

/// Whether one was noted. Any thread.
inline bool stop_noted() { return noted_signal() != 0; }

/// While it lives, calls `tell` with the first signal that is noted, at once, on a thread of its
/// own. There is one at a time, behind note_stop_signals().
class StopWatcher {
 public:
  explicit StopWatcher(std::function<void(int signal)> tell);
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

 private:
  std::jthread thread_;
};

}  // namespace ringlet::app
