#include "app/replay/walk_times.h"

#include <algorithm>

#include "app/replay/call_schedule.h"
#include "comm/schedule/walk.h"

namespace ringlet::app::replay {

namespace {

/// Where a rank is.
struct Place {
  int before = 0;  ///< the step that was done when it came to the next one
  int now = 0;     ///< the latest that is done
};

class Visitor {
 public:
  Visitor(const TracedCall& call, const comm::Schedule& schedule)
      : call_(call), schedule_(schedule), walk_(schedule, *this), places_(call.ranks.size()) {
    for (const TracedRank& rank : call.ranks) {
      walked_.first_stay.push_back(walked_.stays.size());
      for (const train::TraceSpan& span : rank.steps) add_stay(span);
    }
    walked_.first_stay.push_back(walked_.stays.size());
  }

  Walked run() {
    walk_.begin();
    walk_.run();
    walked_.ended = walk_.has_ended();
    return std::move(walked_);
  }

  void arrived(int rank) { place(rank).before = place(rank).now; }

  void message(int from, int to) {
    if (schedule_.out_bytes(walk_.step(from)) != schedule_.in_bytes(walk_.step(to))) return;
    const int step = 1 + std::max(place(from).before, place(to).before);
    walked_.messages.push_back({from, to, walk_.number(from), walk_.number(to), step});
    const double from_came = stay(from).begin_us, to_came = stay(to).begin_us;
    done(from, step, to_came);
    done(to, step, from_came);
    walk_.end_message(from, to);
  }

  void touch(int rank, const comm::Touch& /*touch*/) {
    done(rank, 1 + place(rank).before, stay(rank).begin_us);
  }

  void meeting() {
    int step = 0;
    double all_came = call_.begin_us;
    for (int rank = 0; rank < call_.size(); ++rank) {
      step = std::max(step, place(rank).before + 1);
      all_came = std::max(all_came, stay(rank).begin_us);
    }
    for (int rank = 0; rank < call_.size(); ++rank) done(rank, step, all_came);
  }

 private:
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  Stay& stay(int rank) {
    return walked_.stays[walked_.first_stay[static_cast<std::size_t>(rank)] + walk_.number(rank)];
  }

  void add_stay(const train::TraceSpan& span) {
    const double end = span.begin_us + span.duration_us;
    walked_.stays.push_back({.rank = static_cast<int>(span.rank),
                             .what = span.name,
                             .to = sends(span) ? static_cast<int>(span.peer) : -1,
                             .from = receives(span) ? static_cast<int>(span.from) : -1,
                             .begin_us = span.begin_us,
                             .came_us = span.failed ? end : span.begin_us,
                             .end_us = end,
                             .adds = receives(span) && span.op != "copy",
                             .failed = span.failed});
  }

  void done(int rank, int step, double others_came) {
    place(rank).now = std::max(place(rank).now, step);
    Stay& here = stay(rank);
    here.step = std::max(here.step, step);
    here.came_us = std::clamp(std::max(here.came_us, others_came), here.begin_us, here.end_us);
    walked_.steps = std::max(walked_.steps, step);
  }

  const TracedCall& call_;
  const comm::Schedule& schedule_;
  comm::Walk<Visitor> walk_;
  std::vector<Place> places_;
  Walked walked_;
};

}  // namespace

Walked walk(const TracedCall& call, const comm::Schedule& schedule) {
  return Visitor(call, schedule).run();
}

}  // namespace ringlet::app::replay
