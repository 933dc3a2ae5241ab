// The device of the shape-only dry run: it hands out addresses that are never touched, and
// operations on it check their contracts and count their cost, but compute nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet {

class MetaStream : public Stream {
 public:
  using Stream::Stream;
  void* workspace(std::int64_t) override { return nullptr; }
  void run(Task&&) override {}
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {}
};

class MetaDevice : public Device {
 public:
  MetaDevice() : Device({DeviceKind::meta, 0}) {}
  Stream& compute() override { return compute_; }
  Stream& communication() override { return communication_; }
  std::unique_ptr<Event> make_event() override { return std::make_unique<Event>(); }

 protected:
  void* do_allocate(std::int64_t bytes) override {
    const auto rounded = (static_cast<std::uintptr_t>(bytes) + 511) / 256 * 256;
    return reinterpret_cast<void*>(next_.fetch_add(rounded));  // NOLINT: never dereferenced
  }
  void do_deallocate(void*, std::int64_t) noexcept override {}

 private:
  MetaStream compute_{*this, "compute"};
  MetaStream communication_{*this, "communication"};
  std::atomic<std::uintptr_t> next_{kMetaMemory};
};

}  // namespace ringlet
