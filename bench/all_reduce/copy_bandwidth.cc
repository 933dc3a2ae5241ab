#include "bench/all_reduce/copy_bandwidth.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "base/trace.h"
#include "bench/all_reduce/sizes.h"
#include "kernels/device.h"
#include "kernels/memory.h"

namespace ringlet::bench {

namespace {

constexpr int kPasses = 4;
constexpr std::int64_t kLine = 64;

using Copy = void (*)(const void* from, void* to, std::int64_t bytes);

void plain_copy(const void* from, void* to, std::int64_t bytes) {
  // In pieces below the size from which the C library itself streams.
  constexpr std::int64_t kPiece = 64 << 10;
  for (std::int64_t at = 0; at < bytes; at += kPiece) {
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                static_cast<std::size_t>(std::min(kPiece, bytes - at)));
  }
}

/// Seconds in which `threads` copy a buffer, each its part.
double seconds_of(Copy copy, const Buffer& from, const Buffer& to, int threads) {
  const std::int64_t part = from.bytes() / threads / kLine * kLine;
  const auto copy_part = [&](int thread) {
    copy(static_cast<const std::byte*>(from.data()) + thread * part,
         static_cast<std::byte*>(to.data()) + thread * part, part);
  };
  const std::int64_t begin = now_ns();
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(copy_part, thread);
  copy_part(0);
  others.clear();  // waits for them
  return 1e-9 * static_cast<double>(now_ns() - begin);
}

double rate_of(Copy copy, const Buffer& from, const Buffer& to, int threads) {
  double best = seconds_of(copy, from, to, threads);
  for (int pass = 1; pass < kPasses; ++pass) {
    best = std::min(best, seconds_of(copy, from, to, threads));
  }
  return 1e-9 * static_cast<double>(from.bytes()) / best;
}

CopyRate rates_of(const Buffer& from, const Buffer& to, int threads) {
  CopyRate rate{rate_of(plain_copy, from, to, threads)};
  if constexpr (kHasStreamingCopy) {
    rate.streaming_gbs = rate_of(streaming_copy, from, to, threads);
  }
  return rate;
}

/// Four times the largest cache, but no more than an eighth of the memory that is there.
std::int64_t buffer_bytes() {
  constexpr std::int64_t kLeast = 128 << 20, kMost = 512 << 20;
  const std::int64_t memory =
      std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)};
  const std::int64_t wanted = std::clamp(4 * largest_cache_bytes(), kLeast, kMost);
  return std::max(kLine << 10, std::min(wanted, memory / 8)) / kLine * kLine;
}

}  // namespace

std::int64_t largest_cache_bytes() {
  // The C library asks the processor, which in a virtual machine may tell of its host's.
  std::int64_t largest = 0;
  for (int index = 0;; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::string size;  // "32768K"
    if (!(file >> size)) break;
    largest = std::max(largest, parse_size(size).value_or(0));
  }
  return largest;
}

CopyBandwidth measure_copy_bandwidth() {
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  CopyBandwidth bandwidth{.buffer_bytes = buffer_bytes(), .threads = usable_processors()};
  const Buffer from(*device, bandwidth.buffer_bytes), to(*device, bandwidth.buffer_bytes);
  std::memset(from.data(), 1, static_cast<std::size_t>(from.bytes()));
  std::memset(to.data(), 2, static_cast<std::size_t>(to.bytes()));
  bandwidth.one = rates_of(from, to, 1);
  bandwidth.all = bandwidth.threads > 1 ? rates_of(from, to, bandwidth.threads) : bandwidth.one;
  return bandwidth;
}

}  // namespace ringlet::bench
