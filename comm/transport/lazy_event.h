// LazyEvent: an event that is made when a stream first records it.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace ringlet::comm {

/// One thread records and another waits, each after the other has said so.
class LazyEvent {
 public:
  void record(Stream& stream) {
    Device& device = stream.device();
    if (!event_ || made_for_ != device.id()) {  // CUDA's belong to one GPU
      event_ = device.make_event();
      made_for_ = device.id();
    }
    stream.record(*event_);
  }
  /// Makes `stream` wait for the last record(); does nothing if there was none.
  void hold(Stream& stream) {
    if (event_) stream.wait(*event_);
  }
  /// Blocks the host until the last record() is reached.
  void synchronize() {
    if (event_) event_->synchronize();
  }

 private:
  std::unique_ptr<Event> event_;
  DeviceId made_for_;
};

}  // namespace ringlet::comm
