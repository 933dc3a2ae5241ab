// Replicas over which rows are cut, as one of them sees them where nobody else is there: for what
// is timed or planned on one device.
#pragma once

#include <cstdint>

#include "kernels/elementwise.h"
#include "nn/axis.h"

namespace ringlet::nn {

/// The others have what this one has.
class AxisAlone final : public Axis {
 public:
  AxisAlone(const AxisPosition& position, std::int64_t samples)
      : position_(position), samples_(samples) {}
  const AxisPosition& position() const override { return position_; }
  std::int64_t samples(int) const override { return samples_; }
  std::int64_t most() const override { return samples_; }
  void gather(Stream& compute, ConstView mine, View all, const char*) override {
    const std::int64_t count = mine.count();
    const View slots = all.reshaped({position_.ranks * count});
    for (int rank = 0; rank < position_.ranks; ++rank) {
      copy(compute, mine.reshaped({count}), slots.slice(rank * count, (rank + 1) * count));
    }
  }
  void exchange(Stream& compute, ConstView out, View in, const char*) override {
    copy(compute, out, in);
  }
  void sum(Stream&, View, const char*) override {}
  void sum_own(Stream&, View, const char*) override {}

 private:
  AxisPosition position_;
  std::int64_t samples_;
};

}  // namespace ringlet::nn
