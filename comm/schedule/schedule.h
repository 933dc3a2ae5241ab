// Schedule: what each rank of a collective does, step by step, without the data. It is recorded
// from a strategy (recording.h), or read from a trace. Then it can be checked (check.h), played on
// a network (play.h), and asked whose numbers are where (contributions.h) and what touches memory
// at the wrong time (races.h).
//
// A step is an exchange with other ranks; a meeting of all ranks; or a touch: a rank reads or
// writes memory, its own or others', as PeerAccess does between two meetings.
//
// A ring of 4096 ranks has 33.5 million steps, so a step has 16 bytes. Lengths are numbers in a
// table, since there are few different ones. Where messages lie is kept where it is asked
// for, of up to kMostAddressed ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

/// Of so many ranks the addresses of messages are kept at most.
inline constexpr int kMostAddressed = 64;

/// A piece of memory. The memory of all ranks lies in one space of addresses.
struct Range {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  std::int64_t end() const { return begin + bytes; }
  bool operator==(const Range&) const = default;
};

enum class StepKind : std::uint8_t { exchange, meeting, touch };

struct Step {
  /// The rank that is sent to, or kNobody. Of a meeting: which of RankSchedule::shown is shown, or
  /// kNobody. Of a touch: which of RankSchedule::touches it is.
  std::int32_t to = kNobody;
  std::int32_t from = kNobody;
  std::uint16_t out = 0;  ///< which of Schedule::lengths is sent
  std::uint16_t in = 0;
  StepKind kind = StepKind::exchange;
  Combine combine = Combine::copy;
};
static_assert(sizeof(Step) == 16);

/// Where the two messages of an exchange lie; only the sides that there are.
struct Addresses {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

struct Touch {
  enum class Kind : std::uint8_t {
    copy,            ///< mine = from
    reduce_for_all,  ///< of what each rank has shown: all, from `begin` on, into all
    reduce_into,     ///< the same into `mine`, which stands for what this rank has shown
    reduce_part,     ///< the same, and into what this rank has shown
    reduce_to,       ///< the same, into what rank `of` has shown
    read,            ///< mine = what rank `of` has shown, from `begin` on
    spread,          ///< of what rank `of` has shown: from `begin` on, into all others'
    use,             ///< the program reads and writes `mine`, before and after the collective
  };
  Kind kind = Kind::copy;
  int of = kNobody;
  std::int64_t begin = 0;  ///< bytes from the beginning of what is shown
  Range mine{};            ///< of reduce_for_all, reduce_to, spread: its length alone
  Range from{};
};

struct RankSchedule {
  Range data{};  ///< what the collective works on
  std::vector<Step> steps{};
  std::vector<Addresses> addresses{};  ///< of each step; empty where they are not kept
  std::vector<Touch> touches{};
  std::vector<Range> shown{};

  const Touch& touch(const Step& step) const { return touches[static_cast<std::size_t>(step.to)]; }
  /// Which of the collective's own steps that is, from 1 on: the program's uses of the data before
  /// and after it do not count.
  std::int64_t own_number(std::size_t step) const;
};

struct Schedule {
  std::vector<RankSchedule> ranks{};
  std::vector<std::int64_t> lengths{};  ///< of messages, in bytes

  std::int64_t out_bytes(const Step& step) const { return lengths[step.out]; }
  std::int64_t in_bytes(const Step& step) const { return lengths[step.in]; }
  /// The number of that length in `lengths`. Throws ContractError for more than 65,536 of them.
  std::uint16_t number_of(std::int64_t bytes);
  int size() const { return static_cast<int>(ranks.size()); }
  const RankSchedule& of(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  bool has_addresses() const;
};

/// What is told of a schedule as a whole.
struct Totals {
  std::int64_t steps = 0;          ///< exchanges and meetings of the rank that has the most
  std::int64_t messages = 0;       ///< of all ranks
  std::int64_t bytes = 0;          ///< that all ranks send, or move between memories
  std::int64_t busiest_bytes = 0;  ///< of these, the most that one rank has
};
Totals totals_of(const Schedule& schedule);

/// Bytes that a touch of `rank` moves between its memory and others', or its own shown memory.
std::int64_t moved_bytes(const Touch& touch, int rank, int ranks);
std::int64_t reduced_bytes(const Touch& touch, int ranks);

}  // namespace ringlet::comm
