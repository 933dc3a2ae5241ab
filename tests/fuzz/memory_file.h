// A file in memory, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "tests/fuzz/fuzz.h"

namespace ringlet::fuzz {

class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("fuzz", 0)) {
    promise(::write(file_.get(), data, size) == static_cast<ssize_t>(size), "memory is written");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  Descriptor file_;
};

}  // namespace ringlet::fuzz
