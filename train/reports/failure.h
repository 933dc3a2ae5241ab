// Helpers for ending a run in good order after an error.
#pragma once

#include "base/error.h"
#include "kernels/stream.h"

namespace ringlet::train {

/// A failure of the whole run that all ranks find together and throw alike. So no replica's name is
/// put in front of it.
class RunError : public Error {
 public:
  using Error::Error;
};

/// Such a failure: a loss, a gradient or weights are no numbers any more. What was saved last
/// stays.
class NumbersError : public RunError {
 public:
  using RunError::RunError;
};

/// Waits until the stream is idle and ignores what its tasks threw: another error is already on its
/// way to the user.
inline void drain(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {  // a second error: the caller has the first one in hand
  }
}

}  // namespace ringlet::train
