// RecordCount: how often an event was recorded, and which of these records has been reached.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringlet {

/// Records are numbered from 1. Any thread may call anything.
class RecordCount {
 public:
  std::uint64_t next() { return made_.fetch_add(1) + 1; }
  std::uint64_t latest() const { return made_.load(); }
  void reach(std::uint64_t record) {
    reached_.store(record);
    reached_.notify_all();
  }
  bool is_reached(std::uint64_t record) const { return reached_ >= record; }
  void wait_until(std::uint64_t record) const {
    for (std::uint64_t seen = reached_; seen < record; seen = reached_) reached_.wait(seen);
  }

 private:
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> reached_{0};
};

}  // namespace ringlet
