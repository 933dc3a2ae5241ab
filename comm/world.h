// World: who I am among the ranks. A rank is one replica; the world is processes x threads.
#pragma once

namespace ringlet::comm {

/// size = processes x replicas per process. Nothing outside a transport may assume one process.
struct World {
  int rank = 0;        ///< of this replica in the whole world, 0 <= rank < size
  int size = 1;        ///< ranks in the whole world
  int local_rank = 0;  ///< of this replica in its process, 0 <= local_rank < local_size
  int local_size = 1;  ///< ranks in this process
  bool operator==(const World&) const = default;
};

}  // namespace ringlet::comm
