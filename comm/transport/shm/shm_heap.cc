#include "comm/transport/shm/shm_heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "comm/core/errors.h"

namespace ringlet::comm {

namespace {

SealedMemory make_memory(std::int64_t bytes) {
  try {
    return SealedMemory::make("ringlet heap", bytes);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::too_many_files_open) {
      throw CommError(
          fmt::format("{} KiB that processes share cannot be had: {}; allow more open files "
                      "(ulimit -n)",
                      bytes >> 10, error.what()));
    }
    throw OutOfMemoryError(
        fmt::format("{} KiB that processes share cannot be had: {}; use a smaller batch, or "
                    "--transport gloo",
                    bytes >> 10, error.what()));
  }
}

[[noreturn]] void fail_to_reach(int rank, const std::string& why) {
  throw CommError(
      fmt::format("the memory of rank {} cannot be reached: {}; use --transport gloo, or "
                  "--replicas in one process",
                  rank, why));
}

}  // namespace

void* ShmHeap::allocate(std::int64_t bytes) {
  SealedMemory memory = make_memory(bytes);
  std::byte* const address = memory.data();
  const std::lock_guard lock(mutex_);
  memories_.emplace(address, Numbered{++made_, std::move(memory)});
  version_.fetch_add(1, std::memory_order_release);
  return address;
}

void ShmHeap::deallocate(void* address, std::int64_t /*bytes*/) noexcept {
  const std::lock_guard lock(mutex_);
  if (memories_.erase(static_cast<const std::byte*>(address)) == 0) return;
  version_.fetch_add(1, std::memory_order_release);
}

ShmRange ShmHeap::find(const void* address, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto after = memories_.upper_bound(begin);
  if (after == memories_.begin()) return {};
  const auto& [base, known] = *--after;
  if (begin + bytes > base + known.memory.bytes()) return {};
  return {known.number, begin - base, bytes};
}

void ShmHeap::hand_over(const MemoryMesh& mesh, int process, MemoryNote note) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(memories_.begin(), memories_.end(), [&note](const auto& known) {
    return known.second.number == note.memory;
  });
  if (found == memories_.end()) return;
  const SealedMemory& memory = found->second.memory;
  note.bytes = memory.bytes();
  mesh.hand_over(process, note, memory.descriptor());
}

void ShmShown::hand_over(const ShmRange& range) {
  if (std::find(handed_.begin(), handed_.end(), range.memory) != handed_.end()) return;
  MemoryNote note{.rank = rank_, .memory = range.memory};
  if (handed_.size() == kKept) {
    note.instead_of = handed_.front();
    handed_.erase(handed_.begin());
  }
  for (int process = 0; process < mesh_.processes(); ++process) {
    const bool reads_it = process != rank_ / replicas_ || replicas_ > 1;
    if (reads_it) heap_.hand_over(mesh_, process, note);
  }
  handed_.push_back(range.memory);
}

void* ShmReach::at(int rank, const ShmRange& range) {
  const std::lock_guard lock(mutex_);
  const std::vector<Mapping>& known = mapped_[static_cast<std::size_t>(rank)];
  while (true) {
    const auto mapping = std::find_if(known.begin(), known.end(), [&range](const Mapping& other) {
      return other.number == range.memory;
    });
    if (mapping == known.end()) {
      take_next(rank);
      continue;
    }
    const SealedMemory& memory = mapping->memory;
    if (range.begin < 0 || range.begin + range.bytes > memory.bytes()) {
      fail_to_reach(rank, "it ends before what is shown");
    }
    return memory.data() + range.begin;
  }
}

/// Maps what the process of `rank` has handed over next, of whichever of its ranks.
void ShmReach::take_next(int rank) {
  const int process = rank / replicas_;
  const std::optional<HandedMemory> handed = mesh_.take(process);
  if (!handed) fail_to_reach(rank, "its process has not handed it over");
  const MemoryNote& note = handed->note;
  if (note.rank / replicas_ != process) fail_to_reach(rank, "another rank's came in its place");
  std::vector<Mapping>& known = mapped_[static_cast<std::size_t>(note.rank)];
  std::erase_if(known, [&note](const Mapping& old) { return old.number == note.instead_of; });
  try {
    // Every page: else the first collective would come upon page after page that is not there.
    known.push_back(
        {note.memory, SealedMemory::map(handed->file, note.bytes, SealedMemory::Pages::all)});
  } catch (const std::exception& error) {
    fail_to_reach(rank, error.what());
  }
}

}  // namespace ringlet::comm
