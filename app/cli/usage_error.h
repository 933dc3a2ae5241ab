// The error of a user's request that cannot be met; the program then ends with exit code 2.
#pragma once

#include "kernels/error.h"

namespace ringlet::app {

/// Flags that are valid by themselves but not together, or not for this run.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace ringlet::app
