#include "kernels/device.h"

#include <charconv>
#include <new>
#include <string>
#include <system_error>

#include "base/error.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda_devices.h"
#include "kernels/meta_device.h"

namespace ringlet {

namespace {

constexpr struct {
  std::string_view name;
  DeviceKind kind;
} kKinds[] = {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}, {"meta", DeviceKind::meta}};

constexpr std::align_val_t kHostAlignment{256};

}  // namespace

DeviceId DeviceId::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const auto& known : kKinds) {
    if (name != known.name) continue;
    DeviceId id{known.kind, 0};
    if (colon == std::string_view::npos) return id;
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), id.index);
    if (error == std::errc() && end == digits.data() + digits.size() && id.index >= 0) return id;
    break;
  }
  throw DeviceError("'" + std::string(text) + "' names no device; write cpu, cpu:0 or cuda:1");
}

std::string DeviceId::to_string() const {
  for (const auto& known : kKinds) {
    if (known.kind == kind) return std::string(known.name) + ":" + std::to_string(index);
  }
  return "?";
}

void* Device::allocate(std::int64_t bytes) {
  void* address = do_allocate(bytes);
  allocations_.fetch_add(1, std::memory_order_relaxed);
  bytes_held_.fetch_add(bytes, std::memory_order_relaxed);
  return address;
}

void Device::deallocate(void* address, std::int64_t bytes) noexcept {
  do_deallocate(address, bytes);
  bytes_held_.fetch_sub(bytes, std::memory_order_relaxed);
}

void* Device::allocate_host(std::int64_t bytes) {
  void* address = ::operator new(static_cast<std::size_t>(bytes), kHostAlignment, std::nothrow);
  if (address != nullptr) return address;
  throw OutOfMemoryError("the host has no " + std::to_string(bytes >> 20) +
                         " MiB left; use a smaller batch");
}

void Device::deallocate_host(void* address) noexcept { ::operator delete(address, kHostAlignment); }

namespace {

[[noreturn]] void throw_no_graphs(const Stream& stream) {
  throw DeviceError("the " + std::string(stream.name()) + " stream of " +
                    stream.device().id().to_string() + " captures no graphs; use --graph off");
}

}  // namespace

void Stream::begin_capture() { throw_no_graphs(*this); }
std::unique_ptr<Graph> Stream::end_capture() { throw_no_graphs(*this); }
void Stream::launch(Graph&) { throw_no_graphs(*this); }

namespace {

std::unique_ptr<Device> open_processor(DeviceId id, const DeviceOptions& options) {
  try {
    return std::make_unique<CpuDevice>(id, options);
  } catch (const std::system_error&) {
    throw DeviceError("device " + id.to_string() + " with " + std::to_string(options.threads) +
                      " threads: " + message_of_current_exception());
  }
}

}  // namespace

std::unique_ptr<Device> open_device(DeviceId id, const DeviceOptions& options) {
  if (options.threads < 1 || options.threads > DeviceOptions::kMostThreads) {
    throw DeviceError("DeviceOptions::threads is " + std::to_string(options.threads) +
                      "; give 1 to " + std::to_string(DeviceOptions::kMostThreads));
  }
  switch (id.kind) {
    case DeviceKind::cpu:
      return open_processor(id, options);
    case DeviceKind::meta:
      return std::make_unique<MetaDevice>();
    case DeviceKind::cuda:
      return open_cuda_device(id, options);
  }
  throw DeviceError("no such kind of device");
}

}  // namespace ringlet
