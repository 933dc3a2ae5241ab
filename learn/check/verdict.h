// The one thing that the checker says of a file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/reduce_op.h"
#include "kernels/tensor.h"

namespace ringlet::learn {

enum class Verdict : std::uint8_t {
  passed,
  not_written,
  no_build,
  crash,
  endless,
  deadlock,
  unmatched,
  wrong_peer,
  wrong_values,
  ranks_differ,
  out_of_range,
  too_many_bytes,
  race,
};
/// "wrong-values"
std::string_view name_of(Verdict verdict);

/// What the ranks reduce: the world, the length and the operation in which something shows.
struct Case {
  int ranks = 0;  ///< 0: none was begun
  std::int64_t elements = 0;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  int machines = 1;
  std::array<char, 8> machine_of{};  ///< "0111": of each rank, where machines are unlike
};
/// "p = 3, n = 4, mean"; what is not f32 on one machine is named as well
std::string text_of(const Case& at);

/// What a run sends, over all ranks.
struct Costs {
  std::int64_t bytes_total = 0;
  std::int64_t bytes_busiest = 0;  ///< the most that a rank sends
  std::int64_t messages = 0;
};

struct Finding {
  Verdict verdict = Verdict::passed;
  char layer = ' ';  ///< A order, B numbers, C threads, D races; ' ' before any
  std::string words{};
  Case at{};
  std::optional<Costs> costs{};  ///< after `passed`, in the case `at`
  std::string trace{};           ///< the file; empty where there is none
};

/// One line of JSON.
std::string json_of(const std::string& chapter, const Finding& finding);

}  // namespace ringlet::learn
