#include "comm/transport/shm/shm_heap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "comm/errors.h"
#include "kernels/error.h"

namespace ringlet::comm {

namespace {

/// Whole pages, at least one.
std::size_t length_of(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (bytes + kPage - 1) / kPage) * kPage);
}

/// Closed where its owner does not keep it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  int keep() {
    const int kept = number_;
    number_ = -1;
    return kept;
  }

 private:
  int number_;
};

[[noreturn]] void fail_to_allocate(std::int64_t bytes) {
  const std::string why = std::generic_category().message(errno);
  throw OutOfMemoryError(
      fmt::format("{} KiB that processes share cannot be had: {}; use a smaller batch, or "
                  "--transport gloo",
                  bytes >> 10, why));
}

[[noreturn]] void fail_to_reach(int rank, const std::string& why) {
  throw CommError(
      fmt::format("the memory of rank {} cannot be reached: {}; use --transport gloo, or "
                  "--replicas in one process",
                  rank, why));
}

[[noreturn]] void fail_to_reach_by_errno(int rank) {
  fail_to_reach(rank, std::generic_category().message(errno));
}

}  // namespace

ShmHeap::~ShmHeap() {
  for (const auto& [address, memory] : memories_) {
    ::munmap(const_cast<std::byte*>(address), length_of(memory.bytes));
    ::close(memory.descriptor);
  }
}

void* ShmHeap::allocate(std::int64_t bytes) {
  Descriptor descriptor(::memfd_create("ringlet heap", MFD_CLOEXEC));
  struct stat status {};
  if (descriptor.get() < 0 ||
      ::ftruncate(descriptor.get(), static_cast<off_t>(length_of(bytes))) != 0 ||
      ::fstat(descriptor.get(), &status) != 0) {
    fail_to_allocate(bytes);
  }
  void* address =
      ::mmap(nullptr, length_of(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (address == MAP_FAILED) fail_to_allocate(bytes);
  const std::lock_guard lock(mutex_);
  memories_[static_cast<const std::byte*>(address)] = {descriptor.keep(), status.st_ino, bytes};
  version_.fetch_add(1, std::memory_order_release);
  return address;
}

void ShmHeap::deallocate(void* address, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(static_cast<const std::byte*>(address));
  if (found == memories_.end()) return;
  ::munmap(address, length_of(bytes));
  ::close(found->second.descriptor);
  memories_.erase(found);
  version_.fetch_add(1, std::memory_order_release);
}

ShmPlace ShmHeap::find(const void* address, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto after = memories_.upper_bound(begin);
  if (after == memories_.begin()) return {};
  const auto& [base, memory] = *--after;
  if (begin + bytes > base + memory.bytes) return {};
  return {memory.descriptor, memory.id, memory.bytes, begin - base};
}

ShmReach::~ShmReach() {
  for (const auto& of_rank : mapped_) {
    for (const Mapping& mapping : of_rank) ::munmap(mapping.address, length_of(mapping.bytes));
  }
}

void* ShmReach::at(int rank, int pid, const ShmPlace& place) {
  std::vector<Mapping>& known = mapped_[static_cast<std::size_t>(rank)];
  auto mapping = std::find_if(known.begin(), known.end(), [&place](const Mapping& candidate) {
    return candidate.memory == place.memory;
  });
  if (mapping == known.end()) {
    const std::string name = fmt::format("/proc/{}/fd/{}", pid, place.descriptor);
    const Descriptor descriptor(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
      fail_to_reach_by_errno(rank);
    }
    if (status.st_ino != place.memory) fail_to_reach(rank, name + " is something else by now");
    // Populated: else the first collective would come upon page after page that is not there.
    void* address = ::mmap(nullptr, length_of(place.bytes), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_POPULATE, descriptor.get(), 0);
    if (address == MAP_FAILED) fail_to_reach_by_errno(rank);
    if (known.size() == kKept) {
      ::munmap(known.front().address, length_of(known.front().bytes));
      known.erase(known.begin());
    }
    mapping = known.insert(known.end(), {place.memory, address, place.bytes});
  }
  return static_cast<std::byte*>(mapping->address) + place.begin;
}

}  // namespace ringlet::comm
