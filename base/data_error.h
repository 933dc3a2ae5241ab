// DataError: the error of data from outside, as data sets and pictures are. One line: the file at
// fault, what is wrong with it, the remedy.
#pragma once

#include "base/error.h"

namespace ringlet {

class DataError : public Error {
 public:
  using Error::Error;
};

}  // namespace ringlet
