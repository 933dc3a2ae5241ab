// KeptSamples: what a cache holds of each sample of a data set (Dataset::keep), in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringlet::data {

class KeptSamples {
 public:
  /// Room for those of `set`. Throws DataError where they would not fit into this machine's memory.
  explicit KeptSamples(const Dataset& set);

  std::int64_t size() const { return std::ssize(samples_); }
  std::span<const std::uint8_t> operator[](std::int64_t index) const {
    return samples_[static_cast<std::size_t>(index)];
  }
  /// All of them, one behind the other, where each is what read() gives; else nothing.
  std::span<const std::uint8_t> images() const { return images_; }

  /// Keeps a copy. Several threads may, each of other samples. Throws as the constructor does.
  void put(std::int64_t index, std::span<const std::uint8_t> kept);

 private:
  void require_memory(std::uint64_t bytes) const;

  std::string name_;
  std::atomic<std::uint64_t> bytes_{0};
  std::vector<std::uint8_t> images_;
  std::vector<std::vector<std::uint8_t>> apart_;  // of a set that keeps more than its samples
  std::vector<std::span<const std::uint8_t>> samples_;
};

/// Those of `set`, read by `threads` threads. Throws the error of the first sample that cannot be
/// read.
std::shared_ptr<const KeptSamples> keep_all(const Dataset& set, int threads);

}  // namespace ringlet::data
