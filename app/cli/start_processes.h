// The launcher behind `--processes N`.
#pragma once

namespace ringlet::app {

/// Starts this program, with its own command line, `count` times, each with RINGLET_PROCESS,
/// RINGLET_PROCESS_COUNT and RINGLET_RUN set, and waits for all of them. They die with this
/// process, whatever kills it; SIGINT, SIGTERM and SIGHUP are passed on; and what does not end
/// within seconds of another one's failure is killed. Called while the process has one thread.
/// Returns the exit code: of the worst end, or 128 + n where signal n ended all. Throws CommError
/// where no process is left to say why they ended.
int start_processes(int count);

}  // namespace ringlet::app
