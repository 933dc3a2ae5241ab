#include "comm/report/patience.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/trace.h"

namespace ringlet::comm {

namespace {

/// When a rank that is in no collective last got on; 0 for one that is in some, or of which nothing
/// is known.
std::int64_t last_work_ns(const std::optional<RankStatus>& status) {
  if (!status || status->unheard) return 0;
  const std::optional<CollectiveRecord>& latest = status->latest;
  if (latest && latest->inside()) return 0;
  return std::max({status->worked_ns, status->activity.since_ns, latest ? latest->left_ns : 0});
}

bool is_in(const std::optional<RankStatus>& status, std::int64_t sequence) {
  return status && status->latest && status->latest->inside() &&
         status->latest->tag.sequence == sequence;
}

/// When the last rank came to the collective that all are in, so that its message may still be
/// under way; 0 where they are not all in one.
std::int64_t last_entry_ns(const StatusOfRanks& status, int rank) {
  const auto& own = status[static_cast<std::size_t>(rank)];
  if (!own || !own->latest) return 0;
  std::int64_t latest = 0;
  for (const std::optional<RankStatus>& each : status) {
    if (each && each->apart) continue;
    if (!is_in(each, own->latest->tag.sequence) || each->unheard) return 0;
    latest = std::max(latest, each->latest->entered_ns);
  }
  return latest;
}

}  // namespace

std::chrono::nanoseconds patience_with(const StatusOfRanks& status, int rank,
                                       std::chrono::nanoseconds timeout, std::int64_t now_ns) {
  std::int64_t latest = last_entry_ns(status, rank);
  for (std::size_t other = 0; other < status.size(); ++other) {
    if (!status[other]) return {};
    if (static_cast<int>(other) != rank) latest = std::max(latest, last_work_ns(status[other]));
  }
  if (latest == 0) return {};
  return std::max(std::chrono::nanoseconds(latest - now_ns) + timeout, std::chrono::nanoseconds(0));
}

std::chrono::nanoseconds patience_of(const Transport& transport) {
  return patience_with(look_at_all(transport), transport.rank(), timeout_of(transport), now_ns());
}

bool never_comes(const Transport& transport, int peer) {
  const auto theirs = transport.look_at(peer), own = transport.look_at(transport.rank());
  if (!theirs || !theirs->has_ended()) return false;
  if (!own || !own->latest || !own->latest->inside()) return false;
  return !theirs->latest || theirs->latest->tag.sequence < own->latest->tag.sequence;
}

}  // namespace ringlet::comm
