// Device: one replica's whole execution context (two streams, memory, scratch space). There are no
// globals: two replicas on one processor are two Devices, so N replicas run on one GPU, or on none.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/allocator.h"
#include "base/instruction_set.h"
#include "kernels/stream.h"

namespace ringlet {

/// `meta` has shapes and no memory: running a model on it is the shape-only dry run.
enum class DeviceKind : std::uint8_t { cpu, cuda, meta };

struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  /// Parses "cpu", "cpu:0", "cuda:1", "meta". Throws DeviceError naming the text otherwise.
  static DeviceId parse(std::string_view text);
  std::string to_string() const;  ///< "cpu:0"
  bool operator==(const DeviceId&) const = default;
};

struct DeviceOptions {
  static constexpr int kMostThreads = 1024;
  int threads = 1;      ///< CPU: threads that share the work of one operation, 1 to kMostThreads
  bool overlap = true;  ///< the communication stream has a host thread of its own
  InstructionSet isa = InstructionSet::automatic;
  Bf16Products bf16 = Bf16Products::automatic;  ///< CPU; not more than the processor has
  bool tf32 = false;           ///< CUDA: products of f32 may round their factors to 11 bits
  bool deterministic = false;  ///< CUDA: only kernels that give the same bits each time
  bool autotune = false;       ///< CUDA: time the library's candidates, take the fastest
};

class Device : public Allocator {
 public:
  explicit Device(DeviceId id) : id_(id) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceId id() const { return id_; }
  virtual Stream& compute() = 0;
  virtual Stream& communication() = 0;
  /// Where copies between host and device run beside compute; compute itself where none can.
  virtual Stream& transfer() { return compute(); }
  /// The event may outlive the device.
  virtual std::unique_ptr<Event> make_event() = 0;

  /// Whether this device's kernels may read memory of `other`: their own, or with peer access,
  /// which this call enables where it can be had. To be asked before such memory is used.
  virtual bool reads_memory_of(DeviceId other) const { return other == id_; }

  /// The device's own memory.
  void* allocate(std::int64_t bytes) final;
  void deallocate(void* address, std::int64_t bytes) noexcept final;

  /// Host memory that the device copies to and from beside its other work (pinned, for CUDA).
  /// Aligned to at least 256 bytes. Throws OutOfMemoryError.
  virtual void* allocate_host(std::int64_t bytes);
  virtual void deallocate_host(void* address) noexcept;

  /// Calls of allocate() so far. The test "nothing allocates after step 2" reads it.
  std::int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }
  /// Bytes that can still be allocated, as far as the device knows.
  virtual std::int64_t free_bytes() const { return std::numeric_limits<std::int64_t>::max(); }
  /// The most scratch memory that one operation takes where more would make it faster. A stream
  /// keeps it, and so does a branch of it.
  virtual std::int64_t scratch_limit() const { return 0; }
  /// Bytes held now.
  std::int64_t bytes_held() const { return bytes_held_.load(std::memory_order_relaxed); }

 protected:
  virtual void* do_allocate(std::int64_t bytes) = 0;
  virtual void do_deallocate(void* address, std::int64_t bytes) noexcept = 0;

 private:
  DeviceId id_;
  std::atomic<std::int64_t> allocations_{0};
  std::atomic<std::int64_t> bytes_held_{0};
};

/// The only way to open a device. Throws DeviceError naming the device and the remedy when it does
/// not exist or its support was not built.
std::unique_ptr<Device> open_device(DeviceId id, const DeviceOptions& options = {});

}  // namespace ringlet
