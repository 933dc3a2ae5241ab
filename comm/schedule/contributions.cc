#include "comm/schedule/contributions.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "comm/schedule/accesses.h"
#include "comm/schedule/segments.h"
#include "comm/schedule/walk.h"

namespace ringlet::comm {

namespace {

/// What a stretch of memory holds, as it is carried elsewhere.
struct Content {
  std::int64_t bytes;
  Counts counts;
};
using Contents = std::vector<Content>;

class Memory {
 public:
  explicit Memory(int ranks) : counts_(Counts(static_cast<std::size_t>(ranks))) {}

  Contents read(const Range& range) {
    Contents contents;
    counts_.visit(range, [&](const Range& stretch, const Counts& counts) {
      contents.push_back({stretch.bytes, counts});
    });
    return contents;
  }

  /// From `begin` on; `joins` what is there, or replaces it.
  void write(std::int64_t begin, const Contents& contents, bool joins) {
    for (const Content& content : contents) {
      counts_.visit({begin, content.bytes}, [&](const Range&, Counts& counts) {
        if (!joins) {
          counts = content.counts;
        } else {
          std::transform(counts.begin(), counts.end(), content.counts.begin(), counts.begin(),
                         std::plus<>());
        }
      });
      begin += content.bytes;
    }
  }

 private:
  Segments<Counts> counts_;
};

class Contributor {
 public:
  Contributor(const Schedule& schedule, const std::function<void(const Change&)>& changed)
      : schedule_(schedule),
        changed_(changed),
        walk_(schedule, *this),
        memory_(schedule.size()),
        sent_(schedule.ranks.size()),
        shown_(schedule) {
    for (int rank = 0; rank < schedule.size(); ++rank) write_own(rank);
  }

  std::vector<Parts> run() {
    walk_.begin();
    walk_.run();
    std::vector<Parts> parts;
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      parts.push_back(parts_in(rank, schedule_.of(rank).data));
    }
    return parts;
  }

  /// What is sent is what was there when the rank came to the exchange: its peer gets that, however
  /// soon something is added to it.
  void arrived(int rank) {
    const Step& step = walk_.step(rank);
    if (step.kind != StepKind::exchange || step.to == kNobody) return;
    const RankSchedule& own = schedule_.of(rank);
    sent_[static_cast<std::size_t>(rank)] =
        memory_.read({own.addresses[walk_.number(rank)].out, schedule_.out_bytes(step)});
  }

  void message(int from, int to) {
    const Step& step = walk_.step(to);
    if (schedule_.out_bytes(walk_.step(from)) != schedule_.in_bytes(step)) return;  // it never ends
    const Range into{schedule_.of(to).addresses[walk_.number(to)].in, schedule_.in_bytes(step)};
    memory_.write(into.begin, sent_[static_cast<std::size_t>(from)], step.combine != Combine::copy);
    tell(to, into);
    walk_.end_message(from, to);
  }

  void touch(int rank, const Touch& touch) {
    if (touch.kind == Touch::Kind::use) {
      const bool runs_follow = walk_.number(rank) + 1 < schedule_.of(rank).steps.size();
      if (runs_follow) write_own(rank);
      return;
    }
    const Accesses accesses = accesses_of(touch, rank, shown_.all());
    Memory all(schedule_.size());
    for (const Range& read : accesses.reads) all.write(0, memory_.read(read), true);
    const Contents result = all.read({0, touch.mine.bytes});
    for (const Range& write : accesses.writes) {
      memory_.write(write.begin, result, false);
      tell(rank, write);
    }
  }

  void meeting() { shown_.note(walk_); }

 private:
  /// The program has written the rank's numbers.
  void write_own(int rank) {
    const Range& data = schedule_.of(rank).data;
    Counts own(schedule_.ranks.size());
    own[static_cast<std::size_t>(rank)] = 1;
    memory_.write(data.begin, {{data.bytes, own}}, false);
  }

  /// Of the data of `owner`, as far as they lie in `range`.
  Parts parts_in(int owner, const Range& range) {
    const Range& data = schedule_.of(owner).data;
    const std::int64_t begin = std::max(range.begin, data.begin);
    Parts parts;
    for (const Content& content :
         memory_.read({begin, std::min(range.end(), data.end()) - begin})) {
      const std::int64_t at = parts.empty() ? begin - data.begin : parts.back().end;
      parts.push_back({at, at + content.bytes, content.counts});
    }
    return parts;
  }

  void tell(int rank, const Range& range) {
    if (!changed_) return;
    for (int owner = 0; owner < schedule_.size(); ++owner) {
      Change change{rank, walk_.number(rank), owner, parts_in(owner, range)};
      if (!change.parts.empty()) changed_(change);
    }
  }

  const Schedule& schedule_;
  const std::function<void(const Change&)>& changed_;
  Walk<Contributor> walk_;
  Memory memory_;
  std::vector<Contents> sent_;  // of each rank's exchange
  ShownRanges shown_;
};

}  // namespace

std::vector<Parts> contributions_of(const Schedule& schedule,
                                    const std::function<void(const Change&)>& changed) {
  require(schedule.has_addresses(), "contributions_of", "the schedule says where messages lie");
  return Contributor(schedule, changed).run();
}

}  // namespace ringlet::comm
