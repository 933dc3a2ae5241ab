#include "bench/peers/floor_rank.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/instruction_set.h"

namespace ringlet::bench::peers {

namespace {

constexpr std::size_t kFloatsOfALine = 16;
constexpr std::size_t kLargePage = 2 << 20;
constexpr std::size_t kFlagBytes = 128;  // two lines: processors fetch them in pairs
constexpr int kTurns = 2;

std::size_t at(int number) { return static_cast<std::size_t>(number); }

}  // namespace

std::vector<int> radices_of(int ranks, int radix) {
  std::vector<int> radices;
  while (ranks > 1) {
    int factor = std::min(radix, ranks);
    while (factor > 1 && ranks % factor != 0) --factor;
    if (factor == 1) {
      factor = radix;
      while (ranks % factor != 0) ++factor;
    }
    radices.push_back(factor);
    ranks /= factor;
  }
  return radices;
}

LargePages::LargePages(std::size_t count, bool shared)
    : mapped_bytes_((count * sizeof(float) + kLargePage - 1) / kLargePage * kLargePage +
                    kLargePage),
      count_(count) {
  mapped_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                   (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped_);
  floats_ = reinterpret_cast<float*>((begin + kLargePage - 1) / kLargePage * kLargePage);
  (void)::madvise(floats_, mapped_bytes_ - kLargePage, MADV_HUGEPAGE);  // else it is merely slower
}

LargePages::~LargePages() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

LargePages::LargePages(LargePages&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      floats_(other.floats_),
      count_(other.count_) {}

FloorMemory::FloorMemory(int ranks, std::size_t phases, std::size_t count, bool shared)
    : phases_(phases), flags_(at(ranks) * kFlagBytes) {
  for (int rank = 0; rank < ranks; ++rank) {
    data_.emplace_back(count, shared);
    for (std::size_t window = 0; window < phases * kTurns; ++window) {
      windows_.emplace_back(count, shared);
    }
  }
}

float* FloorMemory::window(int rank, std::size_t phase, int turn) const {
  return windows_[(at(rank) * phases_ + phase) * kTurns + at(turn)].span().data();
}

std::atomic<std::uint64_t>& FloorMemory::flag(int rank) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<std::byte*>(flags_.data()) +
                                                        at(rank) * kFlagBytes);
}

FloorRank::FloorRank(const FloorMemory& memory, int rank, std::span<const int> radices)
    : memory_(memory),
      loops_(for_instruction_set(widest_instruction_set(),
                                 [](auto set) { return floor_loops_of(set); })),
      rank_(rank) {
  int ranks = 1;
  for (const int radix : radices) {
    const int digit = rank / ranks % radix;
    Phase& phase = phases_.emplace_back();
    phase.digit = at(digit);
    for (int other = 0; other < radix; ++other) {
      phase.group.push_back(rank + (other - digit) * ranks);
    }
    ranks *= radix;
  }
  // Some hundred microseconds; few where ranks take turns on processors.
  looks_ = at(ranks) <= std::thread::hardware_concurrency() ? 100'000 : 100;
}

std::function<void()> FloorRank::all_reduce(const std::string& strategy) {
  if (strategy == kOneShot) return [this] { one_shot(); };
  return [this, by_quarters = strategy == kFourStreams] { two_shot(by_quarters); };
}

/// Whole lines, but for the last one's end.
FloorRank::Part FloorRank::part_of(Part whole, std::size_t parts, std::size_t number) {
  const std::size_t lines = (whole.count + kFloatsOfALine - 1) / kFloatsOfALine;
  const auto begin_of = [&](std::size_t part) {
    return std::min(whole.count, (lines * part + parts - 1) / parts * kFloatsOfALine);
  };
  return {whole.begin + begin_of(number), begin_of(number + 1) - begin_of(number)};
}

/// Two windows: while others still add this call's, the next call writes the other one, and the
/// meeting in there says that this one is free again.
void FloorRank::one_shot() {
  const std::span<float> data = memory_.data(rank_);
  for (std::size_t number = 0; number < phases_.size(); ++number) {
    std::memcpy(memory_.window(rank_, number, turn_), data.data(), data.size_bytes());
    meet(phases_[number]);
    for (const int other : phases_[number].group) {
      if (other != rank_)
        loops_.add(data.data(), memory_.window(other, number, turn_), data.size());
    }
  }
  turn_ = 1 - turn_;
}

/// In each phase a smaller part becomes the group's sum; the last one writes it to its group, and
/// the phases before pass on what has come, in turn from the last to the first.
void FloorRank::two_shot(bool by_quarters) {
  std::vector<Part> parts{{0, memory_.data(rank_).size()}};
  for (const Phase& phase : phases_) {
    meet(phase);
    parts.push_back(part_of(parts.back(), phase.group.size(), phase.digit));
    if (&phase == &phases_.back()) {
      sum_into_group(phase, parts.back(), by_quarters);
    } else {
      add_from_group(phase, parts.back());
    }
  }
  meet(phases_.back());
  for (std::size_t number = phases_.size() - 1; number-- > 0;) {
    give_to_group(phases_[number], parts[number + 1]);
    meet(phases_[number]);
  }
}

void FloorRank::add_from_group(const Phase& phase, Part part) {
  float* const to = memory_.data(rank_).data() + part.begin;
  for (const int other : phase.group) {
    if (other != rank_) loops_.add(to, memory_.data(other).data() + part.begin, part.count);
  }
}

void FloorRank::sum_into_group(const Phase& phase, Part part, bool by_quarters) {
  if (phase.group.size() == 2) {
    const auto sum = by_quarters ? loops_.sum_into_both_by_quarters : loops_.sum_into_both;
    sum(memory_.data(phase.group[0]).data() + part.begin,
        memory_.data(phase.group[1]).data() + part.begin, part.count);
    return;
  }
  std::vector<float*> buffers;
  for (const int other : phase.group) buffers.push_back(memory_.data(other).data() + part.begin);
  loops_.sum_into_all(buffers.data(), buffers.size(), part.count);
}

void FloorRank::give_to_group(const Phase& phase, Part part) {
  const float* const from = memory_.data(rank_).data() + part.begin;
  for (const int other : phase.group) {
    if (other == rank_) continue;
    std::memcpy(memory_.data(other).data() + part.begin, from, part.count * sizeof(float));
  }
}

void FloorRank::meet(const Phase& phase) {
  memory_.flag(rank_).store(++met_, std::memory_order_release);
  for (const int other : phase.group) {
    const std::atomic<std::uint64_t>& flag = memory_.flag(other);
    for (int looks = 0; flag.load(std::memory_order_acquire) < met_; ++looks) {
      if (looks >= looks_) std::this_thread::yield();
    }
  }
}

}  // namespace ringlet::bench::peers
