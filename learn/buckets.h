// Chapter 7: when the sums of gradients begin, and how much is summed at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ringlet::learn {

/// Hands a bucket to the communication stream, where buckets are summed one after the other.
using StartBucket = std::function<void(int bucket)>;

/// One object on each rank, for all its steps.
class Buckets {
 public:
  Buckets() = default;
  virtual ~Buckets() = default;
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  /// A step begins. Bucket b has gradients[b] gradients, or none: then it is full already.
  virtual void begin_step(const std::vector<int>& gradients) = 0;
  /// One more gradient of this bucket is final.
  virtual void ready(int bucket) = 0;
};
std::unique_ptr<Buckets> make_buckets(StartBucket start);

/// A step and the network that its gradients travel over.
struct Overlap {
  double all_bytes = 0;   ///< of all gradients; they become final evenly along backward
  double backward_s = 0;  ///< seconds that backward takes
  double latency_s = 0;   ///< a sum of n bytes takes latency_s + n / bytes_per_s
  double bytes_per_s = 0;
};
/// How many bytes a bucket should have.
double bucket_bytes(const Overlap& overlap);

}  // namespace ringlet::learn
