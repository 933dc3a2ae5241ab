// GlooMesh: this process's connections to all other processes of a run. Included by files that are
// compiled with Gloo only.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <string>

#include "comm/processes/rendezvous.h"

namespace ringlet::comm {

class GlooMesh : public gloo::Context {
 public:
  /// Listens on `address`, for each other process on a port of the kernel's choice. On one machine
  /// that is the loopback.
  GlooMesh(const ProcessPlace& place, const std::string& address, double timeout_seconds);
  /// Exchanges the ports over the rendezvous and connects. Throws what Gloo throws, and Aborted.
  void connect(Rendezvous& rendezvous, double timeout_seconds);
  const std::shared_ptr<gloo::transport::Context>& transport_context() const {
    return transportContext_;
  }
};

}  // namespace ringlet::comm
