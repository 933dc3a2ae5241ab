#include "learn/check/trial.h"

#include <fmt/format.h>

#include <cstring>

#include "comm/all_reduce/parts.h"

namespace ringlet::learn {

namespace {

/// "part 2", or "element 5" of what is not cut into parts.
std::string text_of_place(std::int64_t index, const Case& at, bool by_parts) {
  if (!by_parts) return fmt::format("element {}", index);
  int part = 0;
  while (comm::part_begin(at.elements, at.ranks, part + 1) <= index) ++part;
  return fmt::format("part {}", part);
}

}  // namespace

Device& device_of(int rank) {
  static std::vector<std::unique_ptr<Device>> devices;
  while (static_cast<int>(devices.size()) <= rank) {
    devices.push_back(open_device({}, {.overlap = false}));
  }
  return *devices[static_cast<std::size_t>(rank)];
}

std::string wrong_number(const std::vector<View>& results, Fill with, const Case& at, bool by_parts,
                         const Lockstep* lockstep) {
  for (int rank = 0; rank < at.ranks; ++rank) {
    const View& data = results[static_cast<std::size_t>(rank)];
    for (std::int64_t index = 0; index < at.elements; ++index) {
      const double number = number_at(data, index), expected = expected_at(with, at, index);
      if (is_right(number, expected, with, at)) continue;
      std::string words = fmt::format("rank {}, {} {}", rank,
                                      text_of_place(index, at, by_parts && with == Fill::who),
                                      explain(number, expected, with, at, index));
      if (lockstep == nullptr) return words;
      const auto written = lockstep->last_written(rank, index);
      if (written.exchange > 0) {
        words += fmt::format(" (written last in its exchange {}, from rank {})", written.exchange,
                             written.from);
      }
      return words;
    }
  }
  return {};
}

std::string difference_of_ranks(const std::vector<View>& results) {
  for (std::size_t rank = 1; rank < results.size(); ++rank) {
    const View &first = results[0], &other = results[rank];
    for (std::int64_t index = 0; index < first.count(); ++index) {
      const double one = number_at(first, index), two = number_at(other, index);
      if (one == two) continue;
      return fmt::format(
          "element {} is {:.9g} on rank 0 and {:.9g} on rank {}; all ranks should have the same "
          "bytes, so each sum is made once, or everywhere in one order",
          index, one, two, rank);
    }
  }
  return {};
}

Trial::Trial(const Chapter& chapter, const comm::MakeAllReduce& make, const comm::Network& network,
             const LockstepOptions& options, Board& board)
    : chapter_(chapter),
      make_(make),
      machines_(network.machines()),
      board_(board),
      lockstep_(network, options, board),
      strategies_(static_cast<std::size_t>(network.ranks)) {}

void Trial::run(Case at, Fill with) {
  at.ranks = lockstep_.size();
  at.machines = machines_;
  board_.begin('A', at);
  std::vector<Data> memory;
  std::vector<View> views;
  for (int rank = 0; rank < at.ranks; ++rank) {
    memory.emplace_back(at.elements, at.dtype);
    views.push_back(memory.back().view());
    fill(views.back(), with, at, rank);
    device_of(rank);
  }
  lockstep_.run(views,
                [&](int rank) { reduce(rank, memory[static_cast<std::size_t>(rank)], at.op); });
  board_.enter('B');
  const bool by_parts = chapter_.bound == Bound::share || chapter_.bound == Bound::direct;
  const std::string wrong = wrong_number(views, with, at, by_parts, &lockstep_);
  if (!wrong.empty()) board_.conclude(Verdict::wrong_values, wrong);
  const std::string difference = difference_of_ranks(views);
  if (!difference.empty()) board_.conclude(Verdict::ranks_differ, difference);
}

void Trial::reduce(int rank, const Data& data, ReduceOp op) {
  auto& strategy = strategies_[static_cast<std::size_t>(rank)];
  if (strategy == nullptr) strategy = make_(lockstep_.transport(rank));
  strategy->run(device_of(rank).communication(), data.view(), op);
  const std::string damage = data.damage();
  if (!damage.empty())
    board_.conclude(Verdict::out_of_range, fmt::format("rank {} {}", rank, damage));
}

}  // namespace ringlet::learn
