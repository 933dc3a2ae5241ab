// Ctrl-C and SIGTERM as a wish to stop. A signal handler can only reach a global, so there is one.
#pragma once

#include <chrono>

namespace ringlet::app {

/// From now on the first SIGINT or SIGTERM is only noted; a second one ends the process at once.
/// What follows within `grace` counts as the first: launchers pass on what the terminal has sent
/// already.
void note_stop_signals(std::chrono::nanoseconds grace = {});

/// A file that grows beyond the process's limit (ulimit -f) then fails with an error that names it,
/// as a full disk does; by default the process would be killed.
void fail_writes_beyond_limit();

/// The signal that was noted, or 0. Any thread.
int noted_signal();

}  // namespace ringlet::app
