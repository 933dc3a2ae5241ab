// SealedMemory: memory that several processes map, of a size that nobody can change any more.
//
// It has no name in any file system (memfd_create): there is no file to leave behind, /dev/shm and
// its size, which containers make small, play no part, and it is gone with the last process that
// maps it. Its descriptor goes from process to process (processes/memory_mesh.h).
//
// Its seals forbid to shrink it, to grow it, to seal it further and, from Linux 6.3 on, to run it
// as a program. Who maps what another process made looks at them: were memory cut short later,
// whoever touches it would be ended by SIGBUS.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace ringlet::comm {

class SealedMemory {
 public:
  /// Which pages a mapping has from the beginning: those that were touched, or all.
  enum class Pages : std::uint8_t { touched, all };

  /// New zeros; pages that nobody touches take no memory. Throws std::exception, which says why.
  static SealedMemory make(const char* name, std::int64_t bytes);
  /// Memory that another process made. Throws std::exception, which says why, also for what is not
  /// sealed or does not have so many bytes.
  static SealedMemory map(const Descriptor& file, std::int64_t bytes, Pages pages);
  ~SealedMemory();
  SealedMemory(SealedMemory&& other) noexcept;
  SealedMemory& operator=(SealedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  /// Where it was made; elsewhere -1, since a mapping needs no open file.
  int descriptor() const { return file_.get(); }

 private:
  SealedMemory(int descriptor, std::int64_t bytes, Pages pages);

  Descriptor file_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace ringlet::comm
