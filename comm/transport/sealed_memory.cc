#include "comm/transport/sealed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ringlet::comm {

namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Whole pages, at least one.
std::size_t length_of(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (bytes + kPage - 1) / kPage) * kPage);
}

[[noreturn]] void fail_by_errno() { throw std::system_error(errno, std::generic_category()); }

Descriptor make_file(const char* name) {
  constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL, of Linux 6.3; older headers lack it
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int file = ::memfd_create(name, kFlags | kNoExecSeal);
  if (file < 0 && errno == EINVAL) return Descriptor(::memfd_create(name, kFlags));
  return Descriptor(file);
}

/// Throws unless it is sealed and so long.
void check(int file, std::int64_t bytes) {
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    throw std::runtime_error("its size is not sealed");
  }
  struct stat status {};
  if (::fstat(file, &status) != 0) fail_by_errno();
  if (static_cast<std::size_t>(status.st_size) != length_of(bytes)) {
    throw std::runtime_error(
        fmt::format("it has {} bytes and not {}", status.st_size, length_of(bytes)));
  }
}

}  // namespace

SealedMemory SealedMemory::make(const char* name, std::int64_t bytes) {
  Descriptor file = make_file(name);
  if (!file.open() || ::ftruncate(file.get(), static_cast<off_t>(length_of(bytes))) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    fail_by_errno();
  }
  SealedMemory memory(file.get(), bytes, Pages::touched);
  memory.file_ = std::move(file);
  return memory;
}

SealedMemory SealedMemory::map(const Descriptor& file, std::int64_t bytes, Pages pages) {
  if (!file.open()) throw std::runtime_error("this process may open no more files (ulimit -n)");
  check(file.get(), bytes);
  return {file.get(), bytes, pages};
}

SealedMemory::SealedMemory(int descriptor, std::int64_t bytes, Pages pages) : bytes_(bytes) {
  const int populate = pages == Pages::all ? MAP_POPULATE : 0;
  void* address = ::mmap(nullptr, length_of(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | populate,
                         descriptor, 0);
  if (address == MAP_FAILED) fail_by_errno();
  data_ = static_cast<std::byte*>(address);
}

SealedMemory::~SealedMemory() {
  if (data_ != nullptr) ::munmap(data_, length_of(bytes_));
}

SealedMemory::SealedMemory(SealedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_) {}

SealedMemory& SealedMemory::operator=(SealedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace ringlet::comm
