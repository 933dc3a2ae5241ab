// The error of files that cannot be read or written.
#pragma once

#include "kernels/error.h"

namespace ringlet::train {

/// A file or folder could not be read or written, or does not hold what it should.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace ringlet::train
