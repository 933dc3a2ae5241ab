#include "comm/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "comm/core/part_transport.h"
#include "comm/core/rank_text.h"

namespace ringlet::comm {

namespace {

/// The machine of each of `ranks`, of which the first is on machine 0.
std::vector<int> machines_of(const std::vector<int>& ranks, const Transport& whole) {
  std::vector<int> machines, seen;
  for (const int rank : ranks) {
    const int machine = whole.machine_of(rank);
    const auto found = std::find(seen.begin(), seen.end(), machine);
    machines.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(machine);
  }
  return machines;
}

/// Those between the axis's ranks: inside a machine where all of them are on one.
CostModel costs_of(const Line& line, const Transport& channel) {
  const std::vector<int> machines = machines_of(line.ranks, channel);
  const bool apart = *std::max_element(machines.begin(), machines.end()) > 0;
  return apart ? channel.typical_costs() : channel.typical_costs_inside();
}

/// A channel to the whole world, used along one axis.
class AxisTransport final : public PartTransport {
 public:
  AxisTransport(Transport& channel, const Group& group, const Line& line)
      : PartTransport(channel, line.ranks, costs_of(line, channel)),
        channel_(channel),
        machines_(machines_of(line.ranks, channel)) {
    channel.set_line(line);
    set_world(own_world(group));
  }

  bool is_held() const override { return channel_.is_held(); }
  CostModel typical_costs_inside() const override { return channel_.typical_costs_inside(); }
  int machine_of(int rank) const override { return machines_[static_cast<std::size_t>(rank)]; }
  std::string path() const override { return world().machines == 1 ? "" : channel_.path(); }
  /// Says which of the world's ranks the axis's are, which errors count by themselves.
  std::string hosts() const override {
    const Line& line = channel_.line();
    const std::string hosts = channel_.hosts();
    return fmt::format("axis {} is {} of the world{}{}", line.axis, text_of(line.ranks),
                       hosts.empty() ? "" : ", where ", hosts);
  }

 private:
  World own_world(const Group& group) const {
    World own = world();
    own.machine = machine_of(rank());
    own.machines = *std::max_element(machines_.begin(), machines_.end()) + 1;
    own.local_size = own.machine_size = 0;
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) own.local_rank = own.local_size, own.machine_rank = own.machine_size;
      own.local_size += group.holds(in_world(other)) ? 1 : 0;
      own.machine_size += machine_of(other) == own.machine ? 1 : 0;
    }
    return own;
  }

  Transport& channel_;
  std::vector<int> machines_;  // by rank of the axis
};

std::string text_of_axes(const std::vector<MeshAxis>& axes) {
  std::string text;
  for (const MeshAxis& axis : axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  }
  return text;
}

/// Throws ContractError unless the axes are a grid of so many ranks.
void check(const std::vector<MeshAxis>& axes, int ranks) {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes) {
    const auto named = std::count_if(axes.begin(), axes.end(), [&axis](const MeshAxis& other) {
      return other.name == axis.name;
    });
    require(!axis.name.empty() && named == 1, "MeshGroup", "every axis has a name of its own");
    const bool fits = 1 <= axis.size && axis.size <= ranks;
    product = fits ? product * axis.size : 0;
    if (product > ranks || !fits) break;
  }
  if (product == ranks) return;
  throw ContractError(fmt::format(
      "a mesh of {} does not have the {} ranks of the world; give sizes whose product is that",
      text_of_axes(axes), ranks));
}

}  // namespace

MeshGroup::MeshGroup(Group& group, std::vector<MeshAxis> axes)
    : group_(group), axes_(std::move(axes)) {
  if (axes_.empty()) axes_.push_back({kDataAxis, group.size()});
  check(axes_, group.size());
  transports_.resize(axes_.size());
  const auto parts = std::count_if(axes_.begin(), axes_.end(),
                                   [this](const MeshAxis& axis) { return !is_world(axis.name); });
  group_.open_channels(static_cast<int>(parts));
  int channel = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (is_world(axes_[i].name)) continue;
    ++channel;
    for (int rank = group_.first_rank(); group_.holds(rank); ++rank) {
      transports_[i].push_back(
          std::make_unique<AxisTransport>(group_.channel(rank, channel), group_,
                                          Line{axes_[i].name, ranks_along(rank, axes_[i].name)}));
    }
  }
}

std::size_t MeshGroup::index_of(std::string_view axis) const {
  const auto found = std::find_if(axes_.begin(), axes_.end(),
                                  [axis](const MeshAxis& other) { return other.name == axis; });
  if (found != axes_.end()) return static_cast<std::size_t>(found - axes_.begin());
  throw ContractError(
      fmt::format("the mesh has no axis \"{}\"; it is {}", axis, text_of_axes(axes_)));
}

/// From a rank to the next along an axis.
int MeshGroup::stride_of(std::size_t index) const {
  int stride = 1;
  for (std::size_t i = index + 1; i < axes_.size(); ++i) stride *= axes_[i].size;
  return stride;
}

int MeshGroup::coordinate(int rank, std::string_view axis) const {
  const std::size_t index = index_of(axis);
  return rank / stride_of(index) % axes_[index].size;
}

std::vector<int> MeshGroup::ranks_along(int rank, std::string_view axis) const {
  const std::size_t index = index_of(axis);
  const int stride = stride_of(index), first = rank - coordinate(rank, axis) * stride;
  std::vector<int> ranks;
  for (int i = 0; i < axes_[index].size; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

bool MeshGroup::is_world(std::string_view axis) const {
  return axes_[index_of(axis)].size == group_.size();
}

Transport& MeshGroup::transport(int rank, std::string_view axis) const {
  const std::size_t index = index_of(axis);
  if (is_world(axis)) return world(rank);
  require(group_.holds(rank), "MeshGroup::transport", "the rank is in another process");
  return *transports_[index][static_cast<std::size_t>(rank - group_.first_rank())];
}

Mesh::Mesh(const MeshGroup& group, int rank, const CommunicatorOptions& options, const Over& over)
    : group_(group), rank_(rank), world_(over({}, group.world(rank)), options) {
  for (const MeshAxis& axis : group.axes()) {
    auto& part = parts_.emplace_back();
    if (group.is_world(axis.name)) continue;
    part =
        std::make_unique<Communicator>(over(axis.name, group.transport(rank, axis.name)), options);
  }
}

Communicator& Mesh::axis(std::string_view name) {
  const std::size_t index = group_.index_of(name);
  return parts_[index] ? *parts_[index] : world_;
}

}  // namespace ringlet::comm
