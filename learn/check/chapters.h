// The chapters in which code is written, and what each of them asks beyond right results.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringlet::learn {

/// What a file may send at most.
enum class Bound : std::uint8_t {
  none,        ///< it is no strategy
  star,        ///< all ranks: 2 (p - 1) n
  share,       ///< each rank: 2 n (p - 1) / p
  direct,      ///< each rank: as much, and its own part, which it may move like the others'
  two_levels,  ///< less time on 512 machines of 8 than the flat ring takes
};

struct Chapter {
  int number;
  std::string_view name;
  std::string_view strategy;  ///< the product's, whose form the file has; empty: it is none
  std::string_view defines;   ///< what the file has to define at least
  Bound bound;
  bool has_machines = false;  ///< it is checked on several machines as well
  bool has_costs = false;     ///< what it says of its own cost is checked as well
};

/// By its number or its name; null where no code is written there.
const Chapter* find_chapter(std::string_view text);

}  // namespace ringlet::learn
