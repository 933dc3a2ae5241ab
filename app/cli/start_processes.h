// The launcher behind `--processes N`.
#pragma once

namespace ringlet::app {

/// Starts this program `count` times with its own command line, each with RINGLET_PROCESS,
/// RINGLET_PROCESS_COUNT and RINGLET_RUN set, and waits for all of them.
///   - They die with this process, whatever kills it.
///   - SIGINT, SIGTERM and SIGHUP are passed on to them.
///   - After one has failed, those that do not end within seconds are killed.
/// To be called while the process has one thread. Returns the exit code of the worst end, or 128 +
/// n where signal n ended all. Throws CommError where no process is left to say why they ended.
int start_processes(int count);

}  // namespace ringlet::app
