// GlooContext: what Gloo's own collectives run on: a mesh's connections, with waits that can be
// ended. Gloo itself ends none whose message is under way, not even when the connection breaks:
// they last until their time-out. Included by files that are compiled with Gloo only.
#pragma once

#include <gloo/context.h>

#include <memory>

#include "comm/transport/gloo/gloo_mesh.h"

namespace ringlet::comm {

class GlooWaits;

class GlooContext : public gloo::Context {
 public:
  explicit GlooContext(std::shared_ptr<GlooMesh> mesh);

  /// Ends every wait, and all that come later, with an exception. Any thread. For a run that is
  /// given up.
  void break_off();

 private:
  std::shared_ptr<GlooMesh> mesh_;
  std::shared_ptr<GlooWaits> waits_;
};

}  // namespace ringlet::comm
