#include "buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlet::learn {

namespace {

class InIndexOrder : public Buckets {
 public:
  explicit InIndexOrder(StartBucket start) : start_(std::move(start)) {}

  void begin_step(const std::vector<int>& gradients) override {
    pending_ = gradients;
    next_ = 0;
    start_full();
  }

  void ready(int bucket) override {
    --pending_[static_cast<std::size_t>(bucket)];
    start_full();
  }

 private:
  void start_full() {
    while (next_ < pending_.size() && pending_[next_] == 0) start_(static_cast<int>(next_++));
  }

  StartBucket start_;
  std::vector<int> pending_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Buckets> make_buckets(StartBucket start) {
  return std::make_unique<InIndexOrder>(std::move(start));
}

double bucket_bytes(const Overlap& overlap) {
  const double room = overlap.backward_s - overlap.all_bytes / overlap.bytes_per_s;
  const double falling_behind = std::sqrt(overlap.latency_s / overlap.backward_s);
  if (room <= 0) return overlap.all_bytes * falling_behind;
  return overlap.all_bytes * std::min(overlap.latency_s / room, falling_behind);
}

}  // namespace ringlet::learn
