#include "train/failure.h"

namespace ringlet::train {

void drain(Stream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {  // a second error: the caller has the first one in hand
  }
}

}  // namespace ringlet::train
