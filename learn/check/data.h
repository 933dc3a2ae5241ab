// What the ranks reduce in a check: numbers from which it can be read off whose are in a result, in
// memory whose surroundings are watched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/tensor.h"
#include "learn/check/verdict.h"

namespace ringlet::learn {

/// A rank's data between two guards.
class Data {
 public:
  static constexpr std::int64_t kGuardBytes = 256;
  Data(std::int64_t count, DType dtype);
  const View& view() const { return view_; }
  /// "writes before its data"; empty while the guards are as they were.
  std::string damage() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  View view_;
};

double number_at(const View& data, std::int64_t index);

/// What the ranks bring.
enum class Fill : std::uint8_t {
  /// Rank r brings 8^r: in base 8, an f32 sum of up to 8 ranks says how often each is in it. To a
  /// least or largest, one rank after the other brings it.
  who,
  place,   ///< differs by rank and place; sums of any type are exact
  rounds,  ///< sums depend on the order in which they are made
};
void fill(const View& data, Fill with, const Case& at, int rank);
/// The result at that place.
double expected_at(Fill with, const Case& at, std::int64_t index);
/// Whether the number counts as that result.
bool is_right(double number, double expected, Fill with, const Case& at);

/// What a wrong result holds, and what it should: "has the numbers of 1 and 2; it should have those
/// of 0, 1 and 2, each once".
std::string explain(double number, double expected, Fill with, const Case& at, std::int64_t index);

}  // namespace ringlet::learn
