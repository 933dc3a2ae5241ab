#include "comm/transport/local/staggered_memory.h"

#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace ringlet::comm {

namespace {

constexpr std::uintptr_t kPage = 4096;      // the bits 0 to 11 choose a set of the first cache
constexpr std::uintptr_t kAlignment = 256;  // what an Allocator gives
/// In front of what is given out, which may begin anywhere in a page, stands where it was taken.
constexpr std::int64_t kMore = kPage + kAlignment;

}  // namespace

StaggeredMemory::StaggeredMemory(Allocator& from, int place, int places)
    : from_(from),
      begin_(kPage * static_cast<std::uintptr_t>(place) / static_cast<std::uintptr_t>(places) /
             kAlignment * kAlignment) {
  require(0 <= place && place < places, "StaggeredMemory", "a rank's place is one of the places");
}

void* StaggeredMemory::allocate(std::int64_t bytes) {
  auto* const taken = static_cast<std::byte*>(from_.allocate(bytes + kMore));
  const std::uintptr_t least = reinterpret_cast<std::uintptr_t>(taken) + kAlignment;
  const std::uintptr_t skipped = (begin_ - least) % kPage;
  std::byte* const given = taken + kAlignment + skipped;
  std::memcpy(given - sizeof taken, &taken, sizeof taken);
  return given;
}

void StaggeredMemory::deallocate(void* address, std::int64_t bytes) noexcept {
  std::byte* taken = nullptr;
  std::memcpy(&taken, static_cast<std::byte*>(address) - sizeof taken, sizeof taken);
  from_.deallocate(taken, bytes + kMore);
}

}  // namespace ringlet::comm
