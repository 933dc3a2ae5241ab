// The errors of communication between ranks.
//
// The first failure in a world is its root cause. It marks the transport aborted, and every other
// rank that waits, or comes later, throws Aborted, which names the root cause. So the user is shown
// one error, the one that is not Aborted; nobody hangs.
#pragma once

#include <string>

#include "base/error.h"

namespace ringlet::comm {

/// The first failure: the rank that had it, and its message.
struct RootCause {
  int rank = 0;
  std::string message;
};

/// A failure of communication that is a root cause.
class CommError : public Error {
 public:
  using Error::Error;
};

/// A rank waited longer than allowed; the message names who is missing, and what it last did.
class TimeoutError : public CommError {
 public:
  using CommError::CommError;
};

/// Ranks do not agree on what they are doing: other collectives, lengths, plans or contents.
class MismatchError : public CommError {
 public:
  using CommError::CommError;
};

/// Secondary: this rank is well and stops because another one failed. Never shown to the user
/// while the root cause is at hand; not a CommError, so that catching those finds root causes only.
class Aborted : public Error {
 public:
  explicit Aborted(const RootCause& cause, At at = At::current())
      : Error("stopped, because rank " + std::to_string(cause.rank) + " failed: " + cause.message,
              at),
        cause_(cause) {}
  const RootCause& cause() const noexcept { return cause_; }

 private:
  RootCause cause_;
};

/// Throws on `rank`, which finds that the world was aborted: Aborted, or the root cause if a thread
/// that watches on behalf of `rank` has reported it.
[[noreturn]] inline void throw_stopped(const RootCause& cause, int rank) {
  if (cause.rank == rank) throw CommError(cause.message);
  throw Aborted(cause);
}

}  // namespace ringlet::comm
