// Ctrl-C and SIGTERM as requests to stop. A signal handler can only reach a global, so there is
// one.
#pragma once

#include <chrono>

namespace ringlet::app {

/// From now on the first SIGINT or SIGTERM is only noted; a second one ends the process at once.
/// Signals within `grace` after the first one count as the first, since launchers pass on a signal
/// that the terminal has already sent.
void note_stop_signals(std::chrono::nanoseconds grace = {});

/// Makes writing beyond the process's limit on file sizes (ulimit -f) fail with an error that names
/// the file, as on a full disk. By default the process would be killed.
void fail_writes_beyond_limit();

/// Notes a wish to stop as if `signal` had come, unless one has. Any thread.
void note_stop(int signal);

/// The signal that was noted, or 0. Any thread.
int noted_signal();

}  // namespace ringlet::app
