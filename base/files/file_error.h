// The error of files that cannot be read or written.
#pragma once

#include "base/error.h"

namespace ringlet {

/// A file or folder could not be read or written, or does not hold what it should.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace ringlet
