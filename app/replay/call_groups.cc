#include "app/replay/call_groups.h"

#include <algorithm>
#include <utility>

namespace ringlet::app::replay {

namespace {

/// Joins ranks that have to do with each other.
class Groups {
 public:
  explicit Groups(const Came& came) {
    for (const auto& [rank, what] : came) parent_[rank] = rank;
    for (const auto& [rank, what] : came) {
      for (const train::TraceSpan& step : what.steps) {
        for (const std::int64_t other : {step.peer, step.from}) join(rank, other);
      }
    }
  }
  std::int64_t group(std::int64_t rank) const {
    const std::int64_t parent = parent_.at(rank);
    return parent == rank ? rank : group(parent);
  }

 private:
  void join(std::int64_t rank, std::int64_t other) {
    if (parent_.contains(other)) parent_[group(rank)] = group(other);
  }

  std::map<std::int64_t, std::int64_t> parent_;
};

void number_anew(TracedRank& rank, const std::vector<std::int64_t>& members) {
  const auto number = [&members](std::int64_t in_world) {
    const auto found = std::find(members.begin(), members.end(), in_world);
    return found == members.end() ? in_world : found - members.begin();
  };
  for (train::TraceSpan& step : rank.steps) {
    for (std::int64_t* other : {&step.rank, &step.peer, &step.from}) *other = number(*other);
  }
}

TracedCall part_of(Came& came, const std::vector<std::int64_t>& members, int size) {
  TracedCall call;
  call.members = members;
  call.ranks.resize(std::max(static_cast<std::size_t>(size), members.size()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    call.ranks[i] = std::move(came.at(members[i]));
    number_anew(call.ranks[i], members);
  }
  return call;
}

}  // namespace

std::vector<TracedCall> calls_of(Came came, int size) {
  std::vector<TracedCall> calls;
  if (came.rbegin()->first < size) {
    calls.emplace_back().ranks.resize(static_cast<std::size_t>(size));
    for (auto& [rank, what] : came) {
      calls[0].ranks[static_cast<std::size_t>(rank)] = std::move(what);
    }
    return calls;
  }
  const Groups groups(came);
  std::map<std::int64_t, std::vector<std::int64_t>> members;  // of each group
  for (const auto& [rank, what] : came) members[groups.group(rank)].push_back(rank);
  for (const auto& [group, ranks] : members) calls.push_back(part_of(came, ranks, size));
  return calls;
}

}  // namespace ringlet::app::replay
