// Network: what ranks run on that are played rather than run: how many there are, on which
// machines, what messages cost, and which ranks are slow.
//
// The ranks of a machine reach each other straight. What goes to another machine passes its own
// machine's outgoing link and the other one's incoming link, which all ranks of a machine share.
#pragma once

#include <vector>

#include "comm/core/cost_model.h"
#include "comm/core/world.h"

namespace ringlet::comm {

struct Network {
  int ranks = 2;
  CostModel inside{};             ///< between ranks of one machine
  CostModel between{};            ///< between machines; the bytes are those of the whole link
  std::vector<int> machine_of{};  ///< of each rank, from 0 on without a gap; empty: all are on one
  /// Of each rank: so many times as long as others' takes what it sends, receives and adds, 1 at
  /// least; empty: none is slow.
  std::vector<double> slowness{};

  int machines() const;
  int machine(int rank) const {
    return machine_of.empty() ? 0 : machine_of[static_cast<std::size_t>(rank)];
  }
  double slow(int rank) const {
    return slowness.empty() ? 1 : slowness[static_cast<std::size_t>(rank)];
  }
  /// Throws ContractError where there are not as many machines and factors as ranks, or other ones.
  void check() const;
  /// How `rank` sees the world; each machine is a process.
  World world_of(int rank) const;
};

/// All on one machine.
Network one_machine(int ranks, const CostModel& costs);
/// `each` ranks on each of `machines`, one machine after the other.
Network equal_machines(int machines, int each, const CostModel& between, const CostModel& inside);

}  // namespace ringlet::comm
