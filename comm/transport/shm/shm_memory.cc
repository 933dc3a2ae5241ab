#include "comm/transport/shm/shm_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "comm/errors.h"

namespace ringlet::comm {

namespace {

constexpr const char* kInstead = "; use --transport gloo, or --replicas in one process";

[[noreturn]] void fail_with_errno(const std::string& what) {
  const std::string why = std::generic_category().message(errno);
  throw CommError(fmt::format("{}: {}{}", what, why, kInstead));
}

/// Offsets of everything in the shared memory.
struct Offsets {
  explicit Offsets(int count) : ranks(static_cast<std::size_t>(count)) {}

  std::size_t board(std::size_t rank) const { return rank * sizeof(ShmBoard); }
  std::size_t window(std::size_t index) const {
    return windows_begin() + index * static_cast<std::size_t>(ShmMemory::kWindowBytes);
  }
  std::size_t channel(std::size_t index) const {
    return window(2 * ranks) + index * sizeof(ShmChannel);
  }
  std::size_t end() const { return channel(ranks * ranks); }

  std::size_t ranks;

 private:
  std::size_t windows_begin() const {
    constexpr std::size_t kPage = 4096;
    return (board(ranks) + kPage - 1) / kPage * kPage;
  }
};

}  // namespace

ShmMemory ShmMemory::make(int ranks) {
  const int descriptor = ::memfd_create("ringlet", MFD_CLOEXEC);
  if (descriptor < 0) fail_with_errno("memory for several processes cannot be made");
  ShmMemory memory(ranks, descriptor);
  const Offsets offsets(ranks);
  if (::ftruncate(descriptor, static_cast<off_t>(offsets.end())) != 0) {
    fail_with_errno("memory for several processes cannot be made");
  }
  memory.map();
  for (std::size_t rank = 0; rank < offsets.ranks; ++rank) {
    new (memory.memory_ + offsets.board(rank)) ShmBoard;
  }
  // A new file holds zeros, as an empty channel does. Only the counters are constructed, so that
  // the other pages stay untouched.
  for (std::size_t i = 0; i < offsets.ranks * offsets.ranks; ++i) {
    auto* channel = reinterpret_cast<ShmChannel*>(memory.memory_ + offsets.channel(i));
    new (&channel->sent) std::atomic<std::uint64_t>(0);
    new (&channel->taken) std::atomic<std::uint64_t>(0);
  }
  return memory;
}

ShmMemory ShmMemory::open(int ranks, const std::string& address) {
  const int descriptor = ::open(address.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    fail_with_errno(fmt::format("the memory that process 0 shares, {}, cannot be opened", address));
  }
  ShmMemory memory(ranks, descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 ||
      static_cast<std::size_t>(status.st_size) != Offsets(ranks).end()) {
    throw CommError(
        fmt::format("the memory that process 0 shares, {}, has {} bytes and not {}: another "
                    "version of Ringlet made it; start all processes with the same program",
                    address, status.st_size, Offsets(ranks).end()));
  }
  memory.map();
  return memory;
}

ShmMemory::ShmMemory(int ranks, int descriptor) : ranks_(ranks), descriptor_(descriptor) {}

void ShmMemory::map() {
  void* memory =
      ::mmap(nullptr, Offsets(ranks_).end(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    fail_with_errno("memory for several processes cannot be mapped");
  }
  memory_ = static_cast<std::byte*>(memory);
}

ShmMemory::~ShmMemory() {
  if (memory_ != nullptr) ::munmap(memory_, Offsets(ranks_).end());
  if (descriptor_ >= 0) ::close(descriptor_);
}

ShmMemory::ShmMemory(ShmMemory&& other) noexcept
    : ranks_(other.ranks_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)) {}

std::string ShmMemory::address() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor_);
}

ShmBoard& ShmMemory::board(int rank) const {
  const Offsets offsets(ranks_);
  return *std::launder(
      reinterpret_cast<ShmBoard*>(memory_ + offsets.board(static_cast<std::size_t>(rank))));
}

ShmChannel& ShmMemory::channel(int from, int to) const {
  const Offsets offsets(ranks_);
  const std::size_t index =
      static_cast<std::size_t>(from) * offsets.ranks + static_cast<std::size_t>(to);
  return *std::launder(reinterpret_cast<ShmChannel*>(memory_ + offsets.channel(index)));
}

View ShmMemory::window(int rank, int which) const {
  const std::size_t index = 2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(which);
  return {memory_ + Offsets(ranks_).window(index), {kWindowBytes}, DType::u8};
}

}  // namespace ringlet::comm
