#include "comm/transport/gloo/gloo_context.h"

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace ringlet::comm {

using gloo::transport::UnboundBuffer;

/// Thrown to get a rank out of a collective. The rank's transport says why.
class BrokenOff final : public std::exception {
 public:
  const char* what() const noexcept override { return "broken off"; }
};

/// The buffers in which a thread may be waiting.
class GlooWaits {
 public:
  void add(UnboundBuffer& buffer) {
    const std::lock_guard lock(mutex_);
    buffers_.insert(&buffer);
    if (broken_off_) end(buffer);
  }
  void remove(UnboundBuffer& buffer) {
    const std::lock_guard lock(mutex_);
    buffers_.erase(&buffer);
  }
  void break_off() {
    const std::lock_guard lock(mutex_);
    broken_off_ = true;
    for (UnboundBuffer* buffer : buffers_) end(*buffer);
  }
  void note_end() { ended_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  /// Throws if waits were broken off.
  void require_whole() {
    const std::lock_guard lock(mutex_);
    if (broken_off_) throw BrokenOff();
  }

 private:
  /// Gloo remembers this: if no wait is under way, the next one ends.
  static void end(UnboundBuffer& buffer) {
    buffer.abortWaitRecv();
    buffer.abortWaitSend();
  }

  std::mutex mutex_;
  std::set<UnboundBuffer*> buffers_;
  bool broken_off_ = false;
  std::atomic<std::uint64_t> ended_{0};  // waits
};

namespace {

/// A buffer of the mesh, whose waits throw where they were ended: Gloo's collectives do not ask.
class EndingBuffer final : public UnboundBuffer {
 public:
  EndingBuffer(GlooMesh& mesh, std::unique_ptr<UnboundBuffer> inner,
               std::shared_ptr<GlooWaits> waits)
      : UnboundBuffer(inner->ptr, inner->size),
        mesh_(mesh),
        inner_(std::move(inner)),
        waits_(std::move(waits)) {
    waits_->add(*inner_);
  }
  ~EndingBuffer() override { waits_->remove(*inner_); }
  EndingBuffer(const EndingBuffer&) = delete;
  EndingBuffer& operator=(const EndingBuffer&) = delete;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    waits_->require_whole();
    const bool done = inner_->waitRecv(rank, timeout);
    if (!done) waits_->require_whole();
    waits_->note_end();
    return done;
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    waits_->require_whole();
    const bool done = inner_->waitSend(rank, timeout);
    if (!done) waits_->require_whole();
    waits_->note_end();
    return done;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    const Resting resting(mesh_.loop_to_rest());
    inner_->send(to, slot, offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    const Resting resting(mesh_.loop_to_rest());
    inner_->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    const Resting resting(mesh_.loop_to_rest());
    inner_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  GlooMesh& mesh_;
  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<GlooWaits> waits_;
};

class EndingTransport final : public gloo::transport::Context {
 public:
  EndingTransport(GlooMesh& mesh, std::shared_ptr<GlooWaits> waits)
      : Context(mesh.rank, mesh.size),
        mesh_(mesh),
        inner_(mesh.transport_context()),
        waits_(std::move(waits)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override {
    return inner_->getPair(peer);
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    return inner_->createPair(peer);
  }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* memory, std::size_t bytes) override {
    return std::make_unique<EndingBuffer>(mesh_, inner_->createUnboundBuffer(memory, bytes),
                                          waits_);
  }

 private:
  GlooMesh& mesh_;
  std::shared_ptr<gloo::transport::Context> inner_;
  std::shared_ptr<GlooWaits> waits_;
};

}  // namespace

GlooContext::GlooContext(std::shared_ptr<GlooMesh> mesh)
    : gloo::Context(mesh->rank, mesh->size),
      mesh_(std::move(mesh)),
      waits_(std::make_shared<GlooWaits>()) {
  device_ = mesh_->getDevice();
  transportContext_ = std::make_shared<EndingTransport>(*mesh_, waits_);
}

void GlooContext::break_off() { waits_->break_off(); }

std::uint64_t GlooContext::waits_ended() const { return waits_->ended(); }

}  // namespace ringlet::comm
