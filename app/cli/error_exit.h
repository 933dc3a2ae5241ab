// How the program ends when something failed: one line on stderr, and a code.
#pragma once

#include <string>

#include "base/error.h"

namespace ringlet::app {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;          ///< the command line is wrong
inline constexpr int kUnwritten = 3;      ///< what was printed is lost
inline constexpr int kNotGood = 4;        ///< --strict, --fail-over: measured, and refused
inline constexpr int kNoNumbers = 5;      ///< a training whose numbers are none any more
inline constexpr int kInterrupted = 128;  ///< plus the signal's number: what shells expect

/// Flags that are valid by themselves but not together, or not for this run: kUsage.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// What --fail-over and --strict of `ringlet compare` refuse: kNotGood.
class ComparisonError : public Error {
 public:
  using Error::Error;
};

/// "ringlet: error: MESSAGE", on one printable line whatever the message quotes; nothing where
/// another process of `--processes N` has told of one.
void print_error(const std::string& message);
/// "ringlet: warning: MESSAGE"
void print_warning(const std::string& message);

/// Flushes the streams and ends the process, once all of our own threads have ended. Libraries do
/// not clean up: OpenBLAS would wait for its threads, and where memory is short these try for ever
/// to get some.
[[noreturn]] void end_process(int code);

/// Prints the error and ends the process with kFailed at once. Nothing is destroyed and no other
/// stream is flushed: a thread that hangs may hold a lock that this would need.
[[noreturn]] void end_despite_running_threads(const std::string& message);

}  // namespace ringlet::app
