#include "comm/transport/shm/shm_memory.h"

#include <new>

namespace ringlet::comm {

namespace {

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

std::int64_t ShmMemory::bytes_for(int ranks) {
  return static_cast<std::int64_t>(Offsets(ranks).end());
}

ShmBoard& ShmMemory::board(int rank) const {
  const Offsets offsets(ranks_);
  return *std::launder(
      reinterpret_cast<ShmBoard*>(at(offsets.board(static_cast<std::size_t>(rank)))));
}

ShmChannel& ShmMemory::channel(int from, int to) const {
  const Offsets offsets(ranks_);
  const std::size_t index =
      static_cast<std::size_t>(from) * offsets.ranks + static_cast<std::size_t>(to);
  return *std::launder(reinterpret_cast<ShmChannel*>(at(offsets.channel(index))));
}

View ShmMemory::window(int rank, int which) const {
  const std::size_t index = 2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(which);
  return {at(Offsets(ranks_).window(index)), {kWindowBytes}, DType::u8};
}

}  // namespace ringlet::comm
