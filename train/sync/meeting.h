// Meeting: a collective that a replica's step needs at once: on the communication stream, between
// what the compute stream does before and after.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "kernels/device.h"

namespace ringlet::train {

class Meeting {
 public:
  Meeting(Device& device, comm::Communicator& communicator)
      : device_(device),
        communicator_(communicator),
        ready_(device.make_event()),
        done_(device.make_event()) {}

  /// So that a later collective on `numbers` allocates nothing.
  void rehearse(const ConstView& numbers) {
    communicator_.make_room(device_.communication(), numbers.bytes());
  }

  /// collective(communication stream).
  template <class Collective>
  void hold(Stream& compute, Collective collective) {
    Stream& communication = device_.communication();
    compute.record(*ready_);
    communication.wait(*ready_);
    collective(communication);
    communication.record(*done_);
    communication.flush();
    communicator_.require_alive();
    compute.wait(*done_);
  }

 private:
  Device& device_;
  comm::Communicator& communicator_;
  std::unique_ptr<Event> ready_, done_;
};

}  // namespace ringlet::train
