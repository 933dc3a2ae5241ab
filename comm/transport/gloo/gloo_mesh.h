// GlooMesh: this process's connections to all other processes of a run. Included by files that are
// compiled with Gloo only.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <string>

#include "comm/processes/rendezvous.h"
#include "comm/transport/between/loop_rest.h"

namespace ringlet::comm {

class GlooMesh : public gloo::Context {
 public:
  /// Listens on `address`, for each other process on a port of the kernel's choice. On one machine
  /// that is the loopback.
  GlooMesh(const ProcessPlace& place, const std::string& address, double timeout_seconds);
  ~GlooMesh() override;
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;
  /// Exchanges the ports over the rendezvous and connects. Throws what Gloo throws, and Aborted.
  void connect(Rendezvous& rendezvous, double timeout_seconds);
  const std::shared_ptr<gloo::transport::Context>& transport_context() const {
    return transportContext_;
  }
  /// How many processors there are beyond one for each rank and for Gloo's thread; negative where
  /// there are too few. Before any message.
  void set_spare_processors(int spare) { spare_processors_ = spare; }
  /// Lets Gloo's thread sleep while a rank starts messages. Null where all threads have processors:
  /// then none keeps another from running.
  LoopRest* loop_to_rest();

 private:
  class RestHandler;
  int spare_processors_ = 0;
  std::unique_ptr<RestHandler> rest_;
};

}  // namespace ringlet::comm
