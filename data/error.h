// DataError: the errors of data/. One line: the file at fault, what is wrong with it, the remedy.
#pragma once

#include <stdexcept>

namespace ringlet::data {

class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ringlet::data
