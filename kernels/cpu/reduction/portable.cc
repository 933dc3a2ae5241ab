#include <cstddef>
#include <cstring>

#include "kernels/cpu/reduction/loops.h"

namespace ringlet::impl {

namespace {

/// Stores like any others.
struct PlainStores {
  static void line(std::byte* to, const std::byte* from) { std::memcpy(to, from, kLine); }
  static void end() {}
  static void across(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

ReductionLoops loops_of(PortableSet) { return loops_with<PlainStores>(); }

}  // namespace ringlet::impl
