// StopRequest: asked between samples by whatever reads many of them, so that nobody has to wait for
// the last one.
#pragma once

#include <functional>
#include <stdexcept>

namespace ringlet {

/// True: somebody wants the work to end. Any thread. Empty: nobody ever does.
using StopRequest = std::function<bool()>;

/// The work was ended because a StopRequest said so. No failure.
class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped, as was asked for") {}
};

/// Throws Stopped where `request` says so.
inline void stop_if(const StopRequest& request) {
  if (request && request()) throw Stopped();
}

}  // namespace ringlet
