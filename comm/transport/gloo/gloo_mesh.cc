#include "comm/transport/gloo/gloo_mesh.h"

#include <fmt/format.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ringlet::comm {

namespace {

std::string key_of(int from, int to) { return fmt::format("gloo {} to {}", from, to); }

/// What makes Gloo wait for `seconds` until a pair is connected.
std::chrono::milliseconds connect_timeout(double seconds) {
  constexpr double kGloosFactor = 5, kLongest = 3600;
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1e3 * std::min(seconds, kLongest) / kGloosFactor) + 1);
}

}  // namespace

GlooMesh::GlooMesh(const ProcessPlace& place, double timeout_seconds)
    : gloo::Context(place.process, place.processes) {
  device_ = gloo::transport::tcp::CreateDevice("127.0.0.1");
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(connect_timeout(timeout_seconds));
  // All pairs exist before any is connected: a peer that asks early finds an open port.
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) transportContext_->createPair(peer);
  }
}

void GlooMesh::connect(Rendezvous& rendezvous, double timeout_seconds) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> address = getPair(peer)->address().bytes();
    rendezvous.set(key_of(rank, peer), {address.begin(), address.end()});
  }
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::string address = rendezvous.get(key_of(peer, rank), timeout_seconds);
    getPair(peer)->connect({address.begin(), address.end()});
  }
}

}  // namespace ringlet::comm
