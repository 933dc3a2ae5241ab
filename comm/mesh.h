// Mesh: the world as a grid with named axes, and a communicator for each axis.
//
//   MeshGroup grid(group, {{"stage", 2}, {"data", 3}});   each process, before its ranks' threads
//   Mesh mesh(grid, rank, options);                       each rank, on its thread
//   mesh.axis("data").all_reduce(stream, sums, "sums");   over the ranks of its stage
//
// Ranks are numbered along the last axis first. An axis of a rank is the ranks that differ from it
// in that coordinate alone:
//
//             data 0  1  2
//   stage 0        0  1  2      rank 4 is at stage 1, data 1: its data axis is ranks 3, 4 and 5,
//   stage 1        3  4  5      its stage axis ranks 1 and 4
//
// Each axis goes over a channel of its own (Group::open_channels), so that collectives of different
// axes may run side by side, on two threads of a rank. Those of one axis are in order, as of any
// communicator. An abort ends all of them, and errors name the axis and ranks of the world.
//
// An axis that is the whole world is the world's communicator itself: with one axis nothing is
// opened, and nothing is between a rank and the group's transport.
//
// Parts of the world have no access to each other's memory and no library's collectives; so their
// strategies are those that need messages alone. NCCL joins them like a world (Mesh's `over`).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/core/group.h"

namespace ringlet::comm {

/// The axis over which samples are shared out: training's ranks are those along it.
inline constexpr const char* kDataAxis = "data";

struct MeshAxis {
  std::string name;
  int size = 1;
};

/// A group whose world is a mesh. Shared by the threads of a process.
class MeshGroup {
 public:
  /// No axes: one, kDataAxis. Collective over the processes, before the ranks' threads; `group`
  /// outlives this and is part of no other mesh. Throws ContractError unless the names differ and
  /// the sizes multiply to the world's, and as Group::open_channels().
  explicit MeshGroup(Group& group, std::vector<MeshAxis> axes = {});

  const std::vector<MeshAxis>& axes() const { return axes_; }
  /// Where a rank of the world stands along `axis`; it is its rank there.
  int coordinate(int rank, std::string_view axis) const;
  /// The ranks of the world that are `rank`'s axis, in the order of their coordinates.
  std::vector<int> ranks_along(int rank, std::string_view axis) const;
  /// Whether the axis is all ranks.
  bool is_world(std::string_view axis) const;

  /// The transport of a rank of this process to the world, and along an axis.
  Transport& world(int rank) const { return group_.transport(rank); }
  Transport& transport(int rank, std::string_view axis) const;

 private:
  friend class Mesh;
  std::size_t index_of(std::string_view axis) const;
  int stride_of(std::size_t index) const;

  Group& group_;
  std::vector<MeshAxis> axes_;
  std::vector<std::vector<std::unique_ptr<Transport>>> transports_;  // [axis][rank - first]
};

/// What a rank sees of the mesh.
class Mesh {
 public:
  /// The transport to use instead of `host`: that of an axis, or of the world, for which `axis` is
  /// empty. It outlives the mesh.
  using Over = std::function<Transport&(std::string_view axis, Transport& host)>;

  /// On the rank's thread. Throws as Communicator does.
  Mesh(
      const MeshGroup& group, int rank, const CommunicatorOptions& options = {},
      const Over& over = [](std::string_view, Transport& host) -> Transport& { return host; });

  Communicator& world() { return world_; }
  /// Throws ContractError for a name that no axis has.
  Communicator& axis(std::string_view name);
  /// Of this rank.
  int coordinate(std::string_view axis) const { return group_.coordinate(rank_, axis); }

 private:
  const MeshGroup& group_;
  int rank_;
  Communicator world_;
  std::vector<std::unique_ptr<Communicator>> parts_;  // by axis; null: the world
};

}  // namespace ringlet::comm
