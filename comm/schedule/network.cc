#include "comm/schedule/network.h"

#include <algorithm>

#include "base/error.h"

namespace ringlet::comm {

int Network::machines() const {
  return machine_of.empty() ? 1 : *std::max_element(machine_of.begin(), machine_of.end()) + 1;
}

void Network::check() const {
  const auto count = static_cast<std::size_t>(ranks);
  require(ranks >= 1, "Network", "there is a rank");
  require(machine_of.empty() || machine_of.size() == count, "Network", "each rank has a machine");
  require(slowness.empty() || slowness.size() == count, "Network", "each rank has a factor");
  require(std::all_of(machine_of.begin(), machine_of.end(), [](int of) { return of >= 0; }),
          "Network", "machines count from 0");
  require(std::all_of(slowness.begin(), slowness.end(), [](double slow) { return slow >= 1; }),
          "Network", "a rank is slow by a factor of 1 at least");
}

World Network::world_of(int rank) const {
  World world{.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
  world.machine = machine(rank);
  world.machines = machines();
  world.machine_size = ranks;
  world.machine_rank = rank;
  if (!machine_of.empty()) {
    const auto own = machine_of.begin() + rank;
    world.machine_size =
        static_cast<int>(std::count(machine_of.begin(), machine_of.end(), world.machine));
    world.machine_rank = static_cast<int>(std::count(machine_of.begin(), own, world.machine));
    world.local_size = world.machine_size;
    world.local_rank = world.machine_rank;
  }
  return world;
}

Network one_machine(int ranks, const CostModel& costs) {
  return {.ranks = ranks, .inside = costs, .between = costs};
}

Network equal_machines(int machines, int each, const CostModel& between, const CostModel& inside) {
  Network network{.ranks = machines * each, .inside = inside, .between = between};
  for (int rank = 0; machines > 1 && rank < network.ranks; ++rank) {
    network.machine_of.push_back(rank / each);
  }
  return network;
}

}  // namespace ringlet::comm
