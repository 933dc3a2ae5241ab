#include "train/loop/broadcast_model.h"

namespace ringlet::train {

void broadcast_model(Device& device, comm::Communicator& communicator,
                     const nn::Parameters& parameters) {
  Stream& stream = device.communication();
  device.compute().synchronize();
  const View replicated = parameters.values().slice(0, parameters.plan().replicated());
  communicator.broadcast(stream, 0, replicated, "parameters");
  communicator.broadcast(stream, 0, parameters.buffers(), "buffers");
  communicator.broadcast(stream, 0, parameters.counters(), "counters");
  stream.synchronize();
  communicator.require_alive();
}

}  // namespace ringlet::train
