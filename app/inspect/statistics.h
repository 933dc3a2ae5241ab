// Statistics of numbers that come by in pieces, in constant memory.
//
// Mean and variance are kept as (n, mean, sum of squared deviations) and merged piece by piece
// after Chan, Golub and LeVeque (1979), so that neither their number nor a large mean costs digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ringlet::app::inspect {

class Statistics {
 public:
  /// NaN and infinities are counted and left out of the rest.
  void add(std::span<const double> numbers);

  std::int64_t count() const { return finite_ + nans_ + infinities_; }
  std::int64_t nans() const { return nans_; }
  std::int64_t infinities() const { return infinities_; }
  std::int64_t zeros() const { return zeros_; }
  /// Statistics of the finite numbers; NaN where there are none.
  double minimum() const;
  double maximum() const;
  double mean() const;
  double deviation() const;  ///< of the population: divided by n

 private:
  std::int64_t finite_ = 0, nans_ = 0, infinities_ = 0, zeros_ = 0;
  double minimum_ = 0, maximum_ = 0, mean_ = 0, squares_ = 0;
};

/// The numbers that bytes of a safetensors dtype stand for ("F32", "BF16", "BOOL", ...), each as
/// double; `numbers` has bytes.size() / width of them. False for a dtype without numbers that we
/// know.
bool decode(std::string_view dtype, std::span<const std::byte> bytes, std::span<double> numbers);

}  // namespace ringlet::app::inspect
