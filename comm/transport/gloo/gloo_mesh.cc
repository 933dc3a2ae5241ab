#include "comm/transport/gloo/gloo_mesh.h"

#include <fmt/format.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/task_queue.h"

namespace ringlet::comm {

namespace {

std::string key_of(int process) { return fmt::format("gloo's addresses of process {}", process); }

/// What makes Gloo wait for `seconds` until a pair is connected.
std::chrono::milliseconds connect_timeout(double seconds) {
  constexpr double kGloosFactor = 5, kLongest = 3600;
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(1e3 * std::min(seconds, kLongest) / kGloosFactor) + 1);
}

}  // namespace

/// On the list of what Gloo's thread waits for.
class GlooMesh::RestHandler final : public gloo::transport::tcp::Handler {
 public:
  explicit RestHandler(gloo::transport::tcp::Device& device) : device_(device) {
    device_.registerDescriptor(rest_.descriptor(), EPOLLIN, this);
  }
  ~RestHandler() override { device_.unregisterDescriptor(rest_.descriptor(), this); }
  RestHandler(const RestHandler&) = delete;
  RestHandler& operator=(const RestHandler&) = delete;
  void handleEvents(int /*events*/) override { rest_.rest(); }
  LoopRest* rest() { return &rest_; }

 private:
  gloo::transport::tcp::Device& device_;
  LoopRest rest_;
};

GlooMesh::GlooMesh(const ProcessPlace& place, const std::string& address, double timeout_seconds)
    : gloo::Context(place.process, place.processes) {
  device_ = gloo::transport::tcp::CreateDevice(address.c_str());
  rest_ = std::make_unique<RestHandler>(dynamic_cast<gloo::transport::tcp::Device&>(*device_));
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(connect_timeout(timeout_seconds));
  // All pairs exist before any is connected: a peer that asks early finds an open port.
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) transportContext_->createPair(peer);
  }
}

GlooMesh::~GlooMesh() = default;

LoopRest* GlooMesh::loop_to_rest() {
  return TaskQueue::threads() > spare_processors_ ? rest_->rest() : nullptr;
}

/// Each process gives one value, its addresses for all others in their order; all are equally long.
/// A value goes to everybody: one for each pair would make processes to the power of three of them.
void GlooMesh::connect(Rendezvous& rendezvous, double timeout_seconds) {
  std::string own;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> address = getPair(peer)->address().bytes();
    own.append(address.begin(), address.end());
  }
  rendezvous.set(key_of(rank), own);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::string all = rendezvous.get(key_of(peer), timeout_seconds);
    const std::size_t length = all.size() / static_cast<std::size_t>(size - 1);
    const auto place = static_cast<std::size_t>(rank < peer ? rank : rank - 1);
    const std::string address = all.substr(place * length, length);
    getPair(peer)->connect({address.begin(), address.end()});
  }
}

}  // namespace ringlet::comm
