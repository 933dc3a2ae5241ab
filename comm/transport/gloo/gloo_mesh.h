// GlooMesh: this process's connections to all other processes of a run. Included by files that are
// compiled with Gloo only.
//
// Gloo's own listeners take whoever connects first for the peer, and what that one sends for its
// messages. So Gloo gets connections that are there already, and whose other ends have shown who
// they are (peer_sockets.h). It has no call for that, but a pair is content with any connected
// socket under its descriptor's number:
//
//   1. the pair listens on the loopback, and this process connects to it itself
//   2. the socket under the number that the pair has accepted is replaced by the peer's (dup3)
//   3. that one is registered with Gloo's loop, as the pair had registered the first
//
// Nothing was sent over the first, so the pair knows no difference. If somebody else on this
// machine was quicker in 1, the pair is thrown away and the next one tried.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "comm/processes/rendezvous.h"
#include "comm/transport/between/loop_rest.h"

namespace ringlet::comm {

class GlooMesh : public gloo::Context {
 public:
  /// `sockets` as connect_peers() gives them. Throws CommError.
  GlooMesh(const ProcessPosition& position, std::vector<Descriptor> sockets,
           double timeout_seconds);
  ~GlooMesh() override;
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;
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
  void adopt(int peer, const Descriptor& socket);
  bool try_to_adopt(int peer, const Descriptor& socket);

  int spare_processors_ = 0;
  std::unique_ptr<RestHandler> rest_;
};

/// What Gloo's error says, without lines of its sources and addresses that are none of the peer's.
std::string words_of_gloo(const std::exception& error);

/// Runs `call`. What it throws comes in words_of_gloo().
template <class Call>
void in_words_of_gloo(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    throw CommError(words_of_gloo(error));
  }
}

}  // namespace ringlet::comm
