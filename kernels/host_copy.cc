#include "kernels/host_copy.h"

#include <cstring>

#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void copy_from_host(Stream& stream, const void* host, View y) {
  require((host != nullptr || y.bytes() == 0) && !y.absent(), "copy_from_host",
          "copies from memory to a tensor, neither of them null");
  dispatch(stream, {"copy_from_host", 0, static_cast<double>(y.bytes())}, impl::any::copy_from_host,
           host, y);
}

void copy_to_host(Stream& stream, ConstView x, void* host) {
  require((host != nullptr || x.bytes() == 0) && !x.absent(), "copy_to_host",
          "copies from a tensor to memory, neither of them null");
  dispatch(stream, {"copy_to_host", 0, static_cast<double>(x.bytes())}, impl::any::copy_to_host, x,
           host);
}

float read_scalar(Stream& stream, ConstView x) {
  require(x.count() == 1 && x.dtype() == DType::f32, "read_scalar", "takes one f32 element");
  float value = 0;
  copy_to_host(stream, x, &value);
  return value;
}

void enqueue_copy_from_host(Stream& stream, const void* host, View y) {
  dispatch(stream, {"copy_from_host", 0, static_cast<double>(y.bytes())},
           impl::any::enqueue_copy_from_host, host, y);
}

void enqueue_copy_to_host(Stream& stream, ConstView x, void* host) {
  dispatch(stream, {"copy_to_host", 0, static_cast<double>(x.bytes())},
           impl::any::enqueue_copy_to_host, x, host);
}

namespace detail {

HostRing::HostRing(Device& device, std::int64_t bytes, int slots)
    : device_(device),
      bytes_((bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment) {
  require(bytes >= 1 && slots >= 1, "HostRing", "there is at least one slot of one byte");
  for (int i = 0; i < slots; ++i) events_.push_back(device.make_event());
  memory_ = static_cast<std::byte*>(device.allocate_host(bytes_ * slots));
}

HostRing::~HostRing() { device_.deallocate_host(memory_); }

std::size_t HostRing::index(std::int64_t turn) const {
  return static_cast<std::size_t>(turn) % events_.size();
}

void* HostRing::slot(std::int64_t turn) const {
  return memory_ + index(turn) * static_cast<std::size_t>(bytes_);
}

Event& HostRing::event(std::int64_t turn) const { return *events_[index(turn)]; }

}  // namespace detail

void Uploader::upload(Stream& stream, const void* host, View y) {
  require(y.bytes() <= ring_.bytes(), "Uploader::upload", "the copy is larger than was announced");
  Event& event = ring_.event(next_);
  event.synchronize();
  void* slot = ring_.slot(next_);
  std::memcpy(slot, host, static_cast<std::size_t>(y.bytes()));
  enqueue_copy_from_host(stream, slot, y);
  stream.record(event);
  ++next_;
}

void Readback::start(Stream& stream, ConstView x) {
  require(x.bytes() <= ring_.bytes(), "Readback::start", "the copy is larger than was announced");
  require(started_ - finished_ < ring_.slots(), "Readback::start", "every slot is in use");
  enqueue_copy_to_host(stream, x, ring_.slot(started_));
  stream.record(ring_.event(started_));
  ++started_;
}

const void* Readback::finish() {
  require(finished_ < started_, "Readback::finish", "nothing was started");
  ring_.event(finished_).synchronize();
  return ring_.slot(finished_++);
}

}  // namespace ringlet
