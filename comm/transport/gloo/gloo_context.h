// GlooContext: the connections of a mesh, on which Gloo's own collectives run, with waits that can
// be ended. Gloo itself ends no wait whose message is under way, not even when the connection
// breaks: such a wait lasts until its time-out. Included by files that are compiled with Gloo only.
#pragma once

#include <gloo/context.h>

#include <cstdint>
#include <memory>

#include "comm/transport/gloo/gloo_mesh.h"

namespace ringlet::comm {

class GlooWaits;

class GlooContext : public gloo::Context {
 public:
  explicit GlooContext(std::shared_ptr<GlooMesh> mesh);

  /// Ends every wait, now and later, with an exception: for a run that was aborted. Any thread.
  void break_off();
  /// Waits of collectives that have ended. Any thread.
  std::uint64_t waits_ended() const;

 private:
  std::shared_ptr<GlooMesh> mesh_;
  std::shared_ptr<GlooWaits> waits_;
};

}  // namespace ringlet::comm
