// Where to cut a model into stages: of all ways, one in which the slowest stage is fastest, and
// every stage fits its device.
//
//   units     u0 u1 u2 | u3 u4 | u5        layers in order; a stage is a run of them, never empty
//   time      of a stage: forward + backward + update of its units, and the transfers at its cuts
//   bytes     of a stage: those of its units, and for each pass that it holds those of a pass; or
//             what a function says of them
//
// A step of a pipeline is as slow as its slowest stage for each micro-batch, so the largest time
// counts and no other. A dynamic programme: best[s][a], the smallest largest time with which s
// stages take the units from a on, is the minimum over b of max(time of [a, b), best[s - 1][b]).
// O(stages * units^3), and units are tens. Of cuts that are equally good it takes the earliest, so
// that all ranks cut alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ringlet::train {

/// Of planned costs: floating-point operations that take as long as moving a byte. Processors and
/// GPUs that compute in f32 are about so; it decides how much what only moves data counts beside
/// what multiplies.
inline constexpr double kFlopsPerByte = 10;

/// What one unit costs. All seconds are for the same, a micro-batch or a step.
struct UnitCost {
  std::string name{};  ///< for messages: "layer2.1"
  double forward = 0;  ///< seconds
  double backward = 0;
  double update = 0;
  std::int64_t bytes = 0;       ///< held all the time: parameters, gradients, optimiser
  std::int64_t pass_bytes = 0;  ///< held for each pass: activations
};

struct BalanceInput {
  std::vector<UnitCost> units{};  ///< [n], in the model's order
  int stages = 1;                 ///< p
  /// [n - 1] seconds for which a cut behind a unit keeps the stages on both its sides, both
  /// directions together. Empty: none.
  std::vector<double> transfer{};
  /// [n - 1] whether a cut behind a unit is allowed: none may split what is fused. Empty: any.
  std::vector<bool> allowed{};
  std::vector<std::int64_t> capacity{};  ///< [p] bytes of each stage's device. Empty: unlimited
  std::vector<int> held{};               ///< [p] passes that each stage holds. Empty: 1 each
  /// Of units [begin, end) as that stage, for who knows better than the sum of what units have.
  std::function<std::int64_t(int stage, int begin, int end)> bytes{};
};

/// The p - 1 cuts, ascending: stage i has the units from cuts[i - 1] (or 0) to cuts[i] (or n), the
/// latter not included. Throws ContractError where an argument's size is wrong or a time is none,
/// where there are more stages than units or than the allowed cuts can part, and where no cut fits
/// the memory: it then names the stage that is fullest in the best case, its units and its bytes.
std::vector<int> balance(const BalanceInput& input);

/// Seconds of each stage under these cuts, [p], as balance() counts them.
std::vector<double> stage_seconds(const BalanceInput& input, const std::vector<int>& cuts);
/// Bytes of each stage under these cuts, [p].
std::vector<std::int64_t> stage_bytes(const BalanceInput& input, const std::vector<int>& cuts);

}  // namespace ringlet::train
