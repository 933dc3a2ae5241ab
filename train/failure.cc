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
  } catch (...) {  // a second error: the caller has the first one in hand
  }
}

}  // namespace ringlet::train
