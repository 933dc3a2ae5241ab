// World: which rank this is, and how many there are. A rank is one replica, or one stage of a
// replica where the model is cut. The world is all ranks of all processes (docs/words.md).
//
// Launchers count differently: their LOCAL_RANK is a process's number on its machine. Here
// local_rank is a rank's number in its process, and machine_rank its number on its machine.
#pragma once

namespace ringlet::comm {

/// size = processes x ranks of each process. Nothing outside a transport may assume one process.
struct World {
  int rank = 0;          ///< in the whole world, 0 <= rank < size
  int size = 1;          ///< ranks in the whole world
  int local_rank = 0;    ///< of this rank in its process, 0 <= local_rank < local_size
  int local_size = 1;    ///< ranks in this process
  int machine = 0;       ///< of this rank, 0 <= machine < machines
  int machines = 1;      ///< that the world is on
  int machine_rank = 0;  ///< of this rank on its machine, 0 <= machine_rank < machine_size
  int machine_size = 1;  ///< ranks on this machine; machines may have different numbers
  bool operator==(const World&) const = default;
};

}  // namespace ringlet::comm
