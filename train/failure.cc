#include "train/failure.h"

#include <exception>

namespace ringlet::train {

std::string message_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

void drain(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {  // secondary: the caller has the first error in hand
  }
}

}  // namespace ringlet::train
