// Helpers for ending a run in good order after an error.
#pragma once

#include <string>

#include "kernels/error.h"
#include "kernels/stream.h"

namespace ringlet::train {

/// A failure of the whole run that all ranks find together and throw alike. So no replica's name is
/// put in front of it.
class RunError : public Error {
 public:
  using Error::Error;
};

/// what() of the exception that is being handled. Call inside a catch block.
std::string message_of_current_exception();

/// Waits until the stream is idle and ignores what its tasks threw: another error is already on its
/// way to the user.
void drain(Stream& stream) noexcept;

}  // namespace ringlet::train
