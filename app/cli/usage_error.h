// The error of a user who asked for what cannot be; the program then ends with exit code 2.
#pragma once

#include "kernels/error.h"

namespace ringlet::app {

/// Flags that are right by themselves but not together, or not for this run.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace ringlet::app
