// Walk: goes through a schedule as ranks do, and says which message meets which.
//
// A message goes from one rank to another when both have come to it, as if nothing were buffered:
// the k-th send from a to b meets the k-th receive at b from a, since each of the two goes on only
// after the one before. A rank goes on when all sides of its step have ended. Ranks are looked at
// in one fixed order, so each walk of a schedule is the same walk.
//
// A visitor has, all called on the thread of run():
//   void arrived(int rank)                        at another step, not counted those that are over
//   void message(int from, int to)                both are there; ended by end_message(from, to),
//                                                 at once or later
//   void touch(int rank, const Touch& touch)
//   void meeting()                                all are there
#pragma once

#include <cstdint>
#include <vector>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

template <class Visitor>
class Walk {
 public:
  /// Both outlive this.
  Walk(const Schedule& schedule, Visitor& visitor)
      : schedule_(schedule), visitor_(visitor), left_(schedule.size()) {
    for (const RankSchedule& rank : schedule.ranks) {
      at_.push_back({.step = rank.steps.data(), .end = rank.steps.data() + rank.steps.size()});
    }
  }

  void begin() {
    for (int rank = 0; rank < schedule_.size(); ++rank) look_up(rank);
  }

  /// Goes on until each rank has ended, waits for another one or for end_message().
  void run() {
    while (!arrived_.empty()) {
      now_.swap(arrived_);
      for (const int rank : now_) go_on(rank);
      now_.clear();
    }
  }

  void end_message(int from, int to) {
    end_side(from);
    end_side(to);
  }

  bool has_ended() const { return left_ == 0; }
  bool has_ended(int rank) const { return at(rank).step == at(rank).end; }
  std::uint32_t number(int rank) const {
    return static_cast<std::uint32_t>(at(rank).step - schedule_.of(rank).steps.data());
  }
  /// Where the rank is, if it has not ended.
  const Step& step(int rank) const { return *at(rank).step; }
  /// Whether the rank waits for somebody to take what it sends.
  bool waits_to_send(int rank) const { return at(rank).to != kNobody; }
  bool waits_to_receive(int rank) const { return at(rank).from != kNobody; }
  /// Of an exchange: sides that have not ended.
  int open_sides(int rank) const { return at(rank).open; }

 private:
  /// What the others have to know of a rank, in a few bytes: a ring looks at it 33.5 million times.
  struct At {
    std::int32_t to = kNobody, from = kNobody;  // of the sides that no peer has come to
    const Step* step = nullptr;
    const Step* end = nullptr;
    std::uint8_t open = 0;  // sides that have not ended; of a meeting: not counted yet
  };

  At& at(int rank) { return at_[static_cast<std::size_t>(rank)]; }
  const At& at(int rank) const { return at_[static_cast<std::size_t>(rank)]; }

  void look_up(int rank) {
    At& mine = at(rank);
    if (has_ended(rank)) {
      --left_;
      return;
    }
    const Step& next = step(rank);
    if (next.kind == StepKind::exchange) {
      mine.to = next.to;
      mine.from = next.from;
      mine.open = static_cast<std::uint8_t>((next.to != kNobody) + (next.from != kNobody));
    } else {
      mine.open = 1;
    }
    visitor_.arrived(rank);
    arrived_.push_back(rank);
  }

  void advance(int rank) {
    ++at(rank).step;
    look_up(rank);
  }

  void end_side(int rank) {
    if (--at(rank).open == 0) advance(rank);
  }

  void go_on(int rank) {
    if (has_ended(rank)) return;
    const Step& here = step(rank);
    if (here.kind == StepKind::touch) {
      visitor_.touch(rank, schedule_.of(rank).touch(here));
      advance(rank);
    } else if (here.kind == StepKind::meeting) {
      if (at(rank).open == 0) return;  // was looked at before
      at(rank).open = 0;
      if (++met_ == schedule_.size()) meet();
    } else if (at(rank).open == 0) {  // it has neither side
      advance(rank);
    } else {
      const int to = at(rank).to, from = at(rank).from;
      if (to != kNobody && at(to).from == rank) begin_message(rank, to);
      if (from != kNobody && at(from).to == rank) begin_message(from, rank);
    }
  }

  void begin_message(int from, int to) {
    at(from).to = kNobody;
    at(to).from = kNobody;
    visitor_.message(from, to);
  }

  void meet() {
    met_ = 0;
    visitor_.meeting();
    for (int rank = 0; rank < schedule_.size(); ++rank) advance(rank);
  }

  const Schedule& schedule_;
  Visitor& visitor_;
  std::vector<At> at_;
  int left_;
  int met_ = 0;               // that wait in a meeting
  std::vector<int> arrived_;  // at a step that was not looked at
  std::vector<int> now_;
};

}  // namespace ringlet::comm
