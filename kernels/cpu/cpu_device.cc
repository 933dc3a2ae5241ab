#include "kernels/cpu/cpu_device.h"

#include <cstdlib>
#include <new>
#include <string>

#include "base/error.h"

namespace ringlet {

CpuStream::CpuStream(CpuDevice& device, const char* name, ThreadPool* pool,
                     const DeviceOptions& options)
    : Stream(device, name),
      pool_(pool),
      isa_(options.isa == InstructionSet::automatic ? detect_instruction_set() : options.isa),
      bf16_products_(options.bf16 == Bf16Products::automatic ? detect_bf16_products(isa_)
                                                             : options.bf16) {}

CpuStream::~CpuStream() {
  if (workspace_.data != nullptr) device().deallocate(workspace_.data, workspace_.bytes);
  for (const Memory& memory : scratches_) {
    if (memory.data != nullptr) device().deallocate(memory.data, memory.bytes);
  }
}

void* CpuStream::workspace(std::int64_t bytes) { return grown(workspace_, bytes); }

void* CpuStream::scratch(int index, std::int64_t bytes) {
  return grown(scratches_.at(static_cast<std::size_t>(index)), bytes);
}

void* CpuStream::grown(Memory& memory, std::int64_t bytes) {
  if (bytes > memory.bytes || memory.data == nullptr) {
    void* larger = device().allocate(bytes);
    if (memory.data != nullptr) device().deallocate(memory.data, memory.bytes);
    memory = {larger, bytes};
  }
  return memory.data;
}

void CpuStream::run(Task&& task) { task(); }

void CpuStream::record(Event& event) {
  RecordCount& records = static_cast<CpuEvent&>(event).records;
  records.reach(records.next());
}

void CpuStream::wait(Event& event) {
  const RecordCount& records = static_cast<CpuEvent&>(event).records;
  records.wait_until(records.latest());
}

CpuQueueStream::CpuQueueStream(CpuDevice& device, const char* name, const DeviceOptions& options)
    : CpuStream(device, name, nullptr, options) {}

void CpuQueueStream::run(Task&& task) {
  if (queue_.is_running_here()) return task();
  queue_.run(task);
}

void CpuQueueStream::record(Event& event) {
  if (queue_.is_running_here()) return CpuStream::record(event);
  RecordCount& records = static_cast<CpuEvent&>(event).records;
  queue_.run_always([&records, record = records.next()] { records.reach(record); });
}

void CpuQueueStream::wait(Event& event) {
  if (queue_.is_running_here()) return CpuStream::wait(event);
  const RecordCount& records = static_cast<CpuEvent&>(event).records;
  queue_.run_always([&records, record = records.latest()] { records.wait_until(record); });
}

namespace {

constexpr std::size_t kAlignment = 256;

DeviceId checked(DeviceId id) {
  if (id.index == 0) return id;
  throw DeviceError("device " + id.to_string() +
                    " does not exist: the processor is cpu:0, and any number of replicas or ranks "
                    "may run on it (--device cpu)");
}

}  // namespace

CpuDevice::CpuDevice(DeviceId id, const DeviceOptions& options)
    : Device(checked(id)),
      pool_(options.threads),
      compute_(*this, "compute", &pool_, options),
      communication_(options.overlap
                         ? std::make_unique<CpuQueueStream>(*this, "communication", options)
                         : std::make_unique<CpuStream>(*this, "communication", nullptr, options)) {}

void* CpuDevice::do_allocate(std::int64_t bytes) {
  void* address = ::operator new (static_cast<std::size_t>(bytes < 1 ? 1 : bytes),
                                  std::align_val_t{kAlignment}, std::nothrow);
  if (address == nullptr) {
    throw OutOfMemoryError("device " + id().to_string() + " has no " + std::to_string(bytes >> 20) +
                           " MiB left; use a smaller batch");
  }
  return address;
}

void CpuDevice::do_deallocate(void* address, std::int64_t) noexcept {
  ::operator delete (address, std::align_val_t{kAlignment});
}

}  // namespace ringlet
