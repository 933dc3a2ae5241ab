#include "comm/schedule/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "comm/schedule/accesses.h"
#include "comm/schedule/segments.h"
#include "comm/schedule/walk.h"

namespace ringlet::comm {

namespace {

/// How much of each rank's time is known to have passed (Lamport's clocks, one for each rank).
using Clock = std::vector<std::uint32_t>;

void join(Clock& clock, const Clock& other) {
  std::transform(clock.begin(), clock.end(), other.begin(), clock.begin(),
                 [](auto a, auto b) { return std::max(a, b); });
}

struct Access {
  std::uint32_t time = 0;  // of its rank; 0: there was none
  RaceSide side{};
};
/// The last of each rank at one address.
struct History {
  std::vector<Access> reads{}, writes{};
};

std::string words_of(const RaceSide& side) {
  if (side.is_message) return side.writes ? "receives into it" : "sends it";
  switch (side.kind) {
    case Touch::Kind::copy:
    case Touch::Kind::spread:
      return side.writes ? "copies into it" : "copies it";
    case Touch::Kind::read:
      return side.writes ? "copies into it" : "reads it";
    default:
      return side.writes ? "reduces into it" : "reduces it";
  }
}

class RaceFinder {
 public:
  explicit RaceFinder(const Schedule& schedule)
      : schedule_(schedule),
        walk_(schedule, *this),
        clocks_(schedule.ranks.size(), Clock(schedule.ranks.size())),
        sent_(clocks_),
        shown_(schedule),
        memory_(History{std::vector<Access>(schedule.ranks.size()),
                        std::vector<Access>(schedule.ranks.size())}) {}

  std::optional<Race> find() {
    walk_.begin();
    walk_.run();
    return race_;
  }

  void arrived(int rank) {
    tick(rank);
    const Step& step = walk_.step(rank);
    if (step.kind != StepKind::exchange || step.to == kNobody) return;
    const RankSchedule& own = schedule_.of(rank);
    sent_[static_cast<std::size_t>(rank)] = clock(rank);
    access(side_of(rank, false),
           {own.addresses[walk_.number(rank)].out, schedule_.out_bytes(step)});
  }

  void message(int from, int to) {
    const RankSchedule& own = schedule_.of(to);
    if (schedule_.out_bytes(walk_.step(from)) != schedule_.in_bytes(walk_.step(to))) return;
    join(clock(to), sent_[static_cast<std::size_t>(from)]);
    tick(to);  // what came with this rank's own message knows nothing of this
    access(side_of(to, true),
           {own.addresses[walk_.number(to)].in, schedule_.in_bytes(walk_.step(to))});
    walk_.end_message(from, to);
  }

  void touch(int rank, const Touch& touch) {
    const Accesses accesses = accesses_of(touch, rank, shown_.all());
    RaceSide side = side_of(rank, false);
    side.is_message = false;
    side.kind = touch.kind;
    for (const Range& range : accesses.reads) access(side, range);
    side.writes = true;
    for (const Range& range : accesses.writes) access(side, range);
  }

  void meeting() {
    shown_.note(walk_);
    Clock all(clocks_.size());
    for (const Clock& clock : clocks_) join(all, clock);
    for (Clock& clock : clocks_) clock = all;
  }

 private:
  Clock& clock(int rank) { return clocks_[static_cast<std::size_t>(rank)]; }
  void tick(int rank) { ++clock(rank)[static_cast<std::size_t>(rank)]; }
  RaceSide side_of(int rank, bool writes) const {
    return {.rank = rank, .step = walk_.number(rank), .writes = writes, .is_message = true};
  }

  void access(const RaceSide& side, const Range& range) {
    const auto rank = static_cast<std::size_t>(side.rank);
    const Clock& now = clock(side.rank);
    memory_.visit(range, [&](const Range& stretch, History& history) {
      const auto compare = [&](const std::vector<Access>& before) {
        for (std::size_t other = 0; other < before.size(); ++other) {
          if (other != rank && before[other].time > now[other]) {
            note(before[other].side, side, stretch);
          }
        }
      };
      compare(history.writes);
      if (side.writes) compare(history.reads);
      (side.writes ? history.writes : history.reads)[rank] = {now[rank], side};
    });
  }

  void note(const RaceSide& first, const RaceSide& second, const Range& range) {
    if (race_) return;
    race_ = Race{first, second, kNobody, range.begin, range.end()};
    std::string where = "memory beside the data";
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      const Range& data = schedule_.of(rank).data;
      if (range.begin < data.begin || range.end() > data.end()) continue;
      race_->owner = rank;
      race_->begin -= data.begin;
      race_->end -= data.begin;
      where = fmt::format("bytes {} to {} of rank {}'s data", race_->begin, race_->end, rank);
    }
    race_->text = fmt::format("{}: {} while {}", where, text_of(first), text_of(second));
  }

  std::string text_of(const RaceSide& side) const {
    const std::int64_t number = schedule_.of(side.rank).own_number(side.step);
    if (!side.is_message && side.kind == Touch::Kind::use) {
      return fmt::format("rank {} uses it {} the collective", side.rank,
                         number == 0 ? "before" : "after");
    }
    return fmt::format("rank {} {} (its step {})", side.rank, words_of(side), number);
  }

  const Schedule& schedule_;
  Walk<RaceFinder> walk_;
  std::vector<Clock> clocks_;
  std::vector<Clock> sent_;  // with each rank's message
  ShownRanges shown_;
  Segments<History> memory_;
  std::optional<Race> race_;
};

}  // namespace

std::optional<Race> find_race(const Schedule& schedule) {
  require(schedule.has_addresses(), "find_race", "the schedule says where messages lie");
  return RaceFinder(schedule).find();
}

}  // namespace ringlet::comm
