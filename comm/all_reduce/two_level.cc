#include "comm/all_reduce/two_level.h"

#include <algorithm>

#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/doubling.h"
#include "comm/all_reduce/halving_doubling.h"
#include "comm/all_reduce/parts.h"
#include "comm/all_reduce/ring.h"
#include "kernels/elementwise.h"

namespace ringlet::comm {

namespace {

/// The ranks of each machine, in their order.
std::vector<std::vector<int>> ranks_by_machine(const Transport& transport) {
  std::vector<std::vector<int>> ranks(static_cast<std::size_t>(transport.world().machines));
  for (int rank = 0; rank < transport.size(); ++rank) {
    ranks[static_cast<std::size_t>(transport.machine_of(rank))].push_back(rank);
  }
  return ranks;
}

/// The ways between machines: of the strategies that need no more than messages, the fastest for
/// each size by the model. Cost and run both go by it; costs take machines for equal.
StrategyTable ways_between(int machines, const CostModel& shared_link) {
  static const std::vector<Strategy> kWays{strategy_of<DoublingAllReduce>(),
                                           strategy_of<HalvingDoublingAllReduce>(),
                                           strategy_of<RingAllReduce>()};
  return modeled_table(kWays, machines, shared_link);
}

/// What a link costs to each of so many ranks that send over it at once.
CostModel shared_by(int ranks, CostModel link) {
  link.seconds_per_byte *= ranks;
  return link;
}

}  // namespace

TwoLevelAllReduce::TwoLevelAllReduce(Transport& transport) : AllReduce(transport) {
  const auto machines = ranks_by_machine(transport);
  near_ = machines[static_cast<std::size_t>(transport.machine_of(rank()))];
  local_rank_ = static_cast<int>(std::find(near_.begin(), near_.end(), rank()) - near_.begin());
  const auto least = std::min_element(machines.begin(), machines.end(),
                                      [](auto& a, auto& b) { return a.size() < b.size(); });
  parts_ = static_cast<int>(least->size());
  if (machines.size() == 1 || !has_part()) return;
  std::vector<int> same_part;
  for (const auto& ranks : machines)
    same_part.push_back(ranks[static_cast<std::size_t>(local_rank_)]);
  far_ = std::make_unique<PartTransport>(transport, std::move(same_part),
                                         shared_by(parts_, transport.typical_costs()));
  between_ = std::make_unique<AutoAllReduce>(*far_, Strategies(),
                                             ways_between(far_->size(), far_->typical_costs()));
}

TwoLevelAllReduce::~TwoLevelAllReduce() = default;

PathCost TwoLevelAllReduce::path_cost(int ranks, double bytes) {
  return RingAllReduce::path_cost(ranks, bytes);
}

LevelCosts TwoLevelAllReduce::level_costs(int machines, int each, double bytes,
                                          const CostModel& link) {
  const double part = bytes / each;
  const std::string way(look_up(ways_between(machines, shared_by(each, link)), machines,
                                static_cast<std::int64_t>(part)));
  LevelCosts costs{.between = Strategies().find(way)->path_cost(machines, part),
                   .inside = path_cost(each, bytes)};
  costs.between.bytes *= each;  // over the link that they share
  return costs;
}

View TwoLevelAllReduce::level_part(const View& data, int part) const {
  return data.slice(part_begin(data.count(), parts_, part),
                    part_begin(data.count(), parts_, part + 1));
}

/// between(part): reduces it over the machines.
template <class Between>
void TwoLevelAllReduce::run_levels(Stream& stream, const View& data, ReduceOp op, Between between) {
  gather_inside(stream, data, op);
  if (has_part()) {
    const View own = level_part(data, local_rank_);
    if (far_) between(own);
    finish(stream, own, op);
  }
  spread_inside(stream, data);
}

void TwoLevelAllReduce::run(Stream& stream, View data, ReduceOp op) {
  run_levels(stream, data, op, [&](const View& own) {
    between_->run(stream, own, op == ReduceOp::mean ? ReduceOp::sum : op);
  });
}

void TwoLevelAllReduce::run_narrow(Stream& stream, const View& data, const View& wire) {
  run_levels(stream, data, ReduceOp::sum, [&](const View& own) {
    const View narrow = wire.slice(0, own.count());
    cast(stream, own, narrow);
    between_->run(stream, narrow, ReduceOp::sum);
    cast(stream, narrow, own);
  });
}

/// This rank's part = op of it over the machine's ranks. In each step every rank sends the part of
/// the rank so many above, to that rank.
void TwoLevelAllReduce::gather_inside(Stream& stream, const View& data, ReduceOp op) {
  const int ranks = static_cast<int>(near_.size());
  for (int step = 1; step < ranks; ++step) {
    const int above = (local_rank_ + step) % ranks, below = (local_rank_ + ranks - step) % ranks;
    const bool sends = above < parts_;
    transport().exchange(stream, sends ? near_[static_cast<std::size_t>(above)] : kNobody,
                         sends ? level_part(data, above) : View(),
                         has_part() ? near_[static_cast<std::size_t>(below)] : kNobody,
                         has_part() ? level_part(data, local_rank_) : View(), combine_of(op));
  }
}

void TwoLevelAllReduce::spread_inside(Stream& stream, const View& data) {
  const int ranks = static_cast<int>(near_.size());
  for (int step = 1; step < ranks; ++step) {
    const int above = (local_rank_ + step) % ranks, below = (local_rank_ + ranks - step) % ranks;
    const bool receives = below < parts_;
    transport().exchange(stream, has_part() ? near_[static_cast<std::size_t>(above)] : kNobody,
                         has_part() ? level_part(data, local_rank_) : View(),
                         receives ? near_[static_cast<std::size_t>(below)] : kNobody,
                         receives ? level_part(data, below) : View());
  }
}

std::optional<std::int64_t> TwoLevelAllReduce::elements_sent(std::int64_t count) const {
  const auto length = [this, count](int part) {
    return part_begin(count, parts_, part + 1) - part_begin(count, parts_, part);
  };
  const auto others = static_cast<std::int64_t>(near_.size()) - 1;
  if (!has_part()) return count;
  const std::int64_t own = length(local_rank_);
  const std::int64_t far = far_ ? *between_->elements_sent(own) : 0;
  return count - own + far + others * own;
}

}  // namespace ringlet::comm
