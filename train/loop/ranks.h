// Whom a rank meets: the replicas of its stage, the other stages of its replica, and all.
//
//             replica 0  1  2
//   stage 0           0  1  2      rank = stage * replicas + replica
//   stage 1           3  4  5      rank 4: its replicas are 3, 4 and 5, its stages 1 and 4
//
// A model that is not cut is one stage: its replicas are all ranks.
#pragma once

#include <functional>
#include <utility>

#include "comm/communicator.h"
#include "comm/mesh.h"
#include "kernels/device.h"

namespace ringlet::train {

inline constexpr const char* kStageAxis = "stage";

struct Ranks {
  comm::Communicator& replicas;          ///< of this stage; a rank there is the replica
  comm::Communicator& world;             ///< rank 0 reports and has the files
  comm::Communicator* stages = nullptr;  ///< of this replica; a rank there is the stage; null: one

  bool are_cut() const { return stages != nullptr; }
  int replica() const { return replicas.rank(); }
  int stage() const { return are_cut() ? stages->rank() : 0; }
  bool is_last() const { return !are_cut() || stages->rank() + 1 == stages->size(); }
};

/// Of a model that is one stage.
inline Ranks ranks_of(comm::Communicator& all) { return {all, all}; }
/// Of a mesh of kStageAxis and comm::kDataAxis, in this order.
inline Ranks ranks_of(comm::Mesh& mesh) {
  return {mesh.axis(comm::kDataAxis), mesh.world(), &mesh.axis(kStageAxis)};
}

}  // namespace ringlet::train
