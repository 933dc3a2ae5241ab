// The collectives that a benchmark times: what each is called, and what its sizes, its bandwidth
// and its buffers mean. How each runs and is checked: collective_call.h.
//
// Of p ranks and `size` bytes:
//
//   name            a rank has, before   after               busbw / algbw   count
//   all-reduce      size                 size, reduced       2 (p-1)/p       all elements
//   all-gather      its part, size / p   size                (p-1)/p         those of a part
//   reduce-scatter  size                 its part, reduced   (p-1)/p         those of a part
//   broadcast       size on the root     size                1               all
//   reduce          size                 size on the root    1               all
//   all-to-all      size, p parts        size, p parts       (p-1)/p         those of a part
//   send-recv       size                 size, of the rank   1               all
//                                        below
//
// algbw is size / time. The size, the count and the factors are nccl-tests' own, so that figures
// compare. In send-recv every rank sends to the rank above and receives from the one below, the
// last one to rank 0.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ringlet::bench {

enum class CollectiveId : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_recv
};

/// Where a collective finds its input without a copy.
enum class NaturalPlace : std::uint8_t {
  in_place,  ///< where the result will be: to keep the input is a copy first
  apart,     ///< elsewhere: to overwrite the input is a copy first
  either
};

struct Collective {
  CollectiveId id;
  const char* name;      ///< "all-gather": the command's, and what rows say
  const char* summary;   ///< "every rank gets the parts of all"
  bool reduces;          ///< elements, by an operation
  bool has_root;         ///< one rank sends to all, or gets the result
  bool has_parts;        ///< the size is that of all ranks' parts together
  bool same_everywhere;  ///< every rank ends with the same bytes
  NaturalPlace place;
  double bus_passes;  ///< of the size over a bus; 0: busbw is algbw

  /// busbw / algbw.
  double bus_factor(int ranks) const {
    return bus_passes == 0 ? 1 : bus_passes * (ranks - 1) / ranks;
  }
  /// Ranks of which each has a part of its own of the size.
  int parts(int ranks) const { return has_parts ? ranks : 1; }
  /// Whether it runs so without flags: in the way that needs no copy.
  bool is_in_place() const { return place != NaturalPlace::apart; }
};

/// All of them, all-reduce first.
std::span<const Collective> collectives();
const Collective& collective_of(CollectiveId id);
/// Null for a name that none has.
const Collective* find_collective(std::string_view name);

}  // namespace ringlet::bench
