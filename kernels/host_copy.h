// Copies between host memory and device memory: for weights and numbers to be shown, and without
// anybody waiting for them, for batches and small numbers:
//
//   Uploader   host -> device: upload() returns at once, the host memory may be reused at once
//   Readback   device -> host: start() returns at once, finish() waits for the oldest
//
// Both own a ring of slots of pinned host memory, which lets a GPU copy beside its other work. A
// slot is used again when its last copy has run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = the y.bytes() bytes at `host`, in y's own layout. The host memory may be reused at once.
void copy_from_host(Stream& stream, const void* host, View y);
/// Writes the x.bytes() bytes of x to `host`; returns when they are there.
void copy_to_host(Stream& stream, ConstView x, void* host);
/// The one element of an f32 view; blocks until it is computed.
float read_scalar(Stream& stream, ConstView x);

/// y = the y.bytes() bytes at `host`. That is memory of Device::allocate_host(), which must stay
/// unchanged until the stream has run the copy.
void enqueue_copy_from_host(Stream& stream, const void* host, View y);
/// Writes the x.bytes() bytes of x to `host`, memory of Device::allocate_host(), when the stream
/// comes to it.
void enqueue_copy_to_host(Stream& stream, ConstView x, void* host);

namespace detail {

/// Slots of pinned memory, each with the event after which it is free again.
class HostRing {
 public:
  HostRing(Device& device, std::int64_t bytes, int slots);
  ~HostRing();
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  std::int64_t bytes() const { return bytes_; }
  int slots() const { return static_cast<int>(events_.size()); }
  void* slot(std::int64_t turn) const;
  Event& event(std::int64_t turn) const;

 private:
  std::size_t index(std::int64_t turn) const;

  Device& device_;
  std::int64_t bytes_;
  std::byte* memory_;
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace detail

class Uploader {
 public:
  /// For copies of at most `bytes`. With `slots` of them under way, the next one waits.
  Uploader(Device& device, std::int64_t bytes, int slots = 4) : ring_(device, bytes, slots) {}

  /// y = the y.bytes() bytes at `host`. All calls on the same stream.
  void upload(Stream& stream, const void* host, View y);

 private:
  detail::HostRing ring_;
  std::int64_t next_ = 0;
};

class Readback {
 public:
  /// For copies of at most `bytes`. At most `slots` of them may be started and not yet finished.
  Readback(Device& device, std::int64_t bytes, int slots) : ring_(device, bytes, slots) {}

  /// Throws ContractError when all slots are in use.
  void start(Stream& stream, ConstView x);
  /// Waits for the oldest start() that was not finished. What it read stays until `slots` further
  /// calls of start().
  const void* finish();
  /// Whether finish() would return at once.
  bool finished() const { return ring_.event(finished_).reached(); }

 private:
  detail::HostRing ring_;
  std::int64_t started_ = 0;
  std::int64_t finished_ = 0;
};

}  // namespace ringlet
