#include "kernels/cpu/cpu_device.h"

#include <cstdlib>
#include <new>
#include <string>

#include "kernels/error.h"

namespace ringlet {

void CpuEvent::reach(std::uint64_t record) {
  reached_.store(record);
  reached_.notify_all();
}

void CpuEvent::wait_until(std::uint64_t record) const {
  for (std::uint64_t seen = reached_; seen < record; seen = reached_) reached_.wait(seen);
}

CpuStream::CpuStream(CpuDevice& device, const char* name, ThreadPool* pool, InstructionSet isa)
    : Stream(device, name),
      pool_(pool),
      isa_(isa == InstructionSet::automatic ? detect_instruction_set() : isa) {}

CpuStream::~CpuStream() {
  if (workspace_ != nullptr) device().deallocate(workspace_, workspace_bytes_);
}

void* CpuStream::workspace(std::int64_t bytes) {
  if (bytes > workspace_bytes_ || workspace_ == nullptr) {
    void* larger = device().allocate(bytes);
    if (workspace_ != nullptr) device().deallocate(workspace_, workspace_bytes_);
    workspace_ = larger;
    workspace_bytes_ = bytes;
  }
  return workspace_;
}

void CpuStream::run(Task task) { task(); }

void CpuStream::record(Event& event) {
  auto& cpu_event = static_cast<CpuEvent&>(event);
  cpu_event.reach(cpu_event.next_record());
}

void CpuStream::wait(Event& event) {
  const auto& cpu_event = static_cast<CpuEvent&>(event);
  cpu_event.wait_until(cpu_event.recorded());
}

CpuQueueStream::CpuQueueStream(CpuDevice& device, const char* name, InstructionSet isa)
    : CpuStream(device, name, nullptr, isa), ring_(kCapacity), worker_([this] { work(); }) {}

CpuQueueStream::~CpuQueueStream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void CpuQueueStream::push(Task task, bool always) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ < kCapacity; });
    ring_[(head_ + count_) % kCapacity] = {task, always};
    ++count_;
  }
  changed_.notify_all();
}

void CpuQueueStream::run(Task task) { push(task, false); }

void CpuQueueStream::record(Event& event) {
  auto& cpu_event = static_cast<CpuEvent&>(event);
  push([&cpu_event, record = cpu_event.next_record()] { cpu_event.reach(record); }, true);
}

void CpuQueueStream::wait(Event& event) {
  const auto& cpu_event = static_cast<CpuEvent&>(event);
  push([&cpu_event, record = cpu_event.recorded()] { cpu_event.wait_until(record); }, true);
}

void CpuQueueStream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CpuQueueStream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return count_ > 0 || stop_; });
    if (count_ == 0) return;  // what was handed over before the end has run
    Entry entry = ring_[head_];
    const bool dropped = error_ && !entry.always;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!dropped) entry.task();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    head_ = (head_ + 1) % kCapacity;
    --count_;
    changed_.notify_all();
  }
}

namespace {

constexpr std::size_t kAlignment = 256;

DeviceId checked(DeviceId id) {
  if (id.index == 0) return id;
  throw DeviceError("device " + id.to_string() +
                    " does not exist: the processor is cpu:0, and any number of replicas may run "
                    "on it (--replicas N --device cpu)");
}

}  // namespace

CpuDevice::CpuDevice(DeviceId id, const DeviceOptions& options)
    : Device(checked(id)),
      pool_(options.threads),
      compute_(*this, "compute", &pool_, options.isa),
      communication_(
          options.overlap
              ? std::make_unique<CpuQueueStream>(*this, "communication", options.isa)
              : std::make_unique<CpuStream>(*this, "communication", nullptr, options.isa)) {}

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
