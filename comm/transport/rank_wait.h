// RankWait: how a rank waits for another one, and how it fails.
#pragma once

#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include "comm/core/errors.h"
#include "comm/core/transport.h"
#include "comm/report/exchange_report.h"
#include "comm/report/patience.h"
#include "comm/transport/doorbell.h"

namespace ringlet::comm {

/// How long to spin before sleeping. With more ranks than processors, a rank that spins keeps the
/// one from running that it waits for. Otherwise spin about as long as falling asleep and being
/// woken takes.
inline std::chrono::nanoseconds spin_time(int ranks, int processors) {
  constexpr std::chrono::microseconds kSpin(50);
  return ranks > processors ? std::chrono::microseconds(0) : kSpin;
}

/// Round figures for Transport::typical_costs() where data go through memory. With more ranks than
/// processors they take turns, and whoever waits is woken by the system's scheduler.
inline CostModel memory_costs(int ranks, int processors) {
  constexpr double kLatency = 0.12e-6, kLatencyByScheduler = 25e-6;  // seconds
  const bool in_turns = ranks > processors;
  const double turns = in_turns ? static_cast<double>(ranks) / processors : 1;
  return {turns * (in_turns ? kLatencyByScheduler : kLatency), turns / 50e9, turns / 16e9};
}

/// `RanksGroup` is a LocalGroup or a JoinedGroup: it knows whether the ranks have been given up,
/// and gives them up. Whoever does that rings `doorbell`.
template <class RanksGroup>
class RankWait {
 public:
  /// For the rank of `transport`. All of them outlive this.
  RankWait(RanksGroup& group, Transport& transport, Doorbell& doorbell,
           std::chrono::nanoseconds spin)
      : group_(group), transport_(transport), doorbell_(doorbell), spin_(spin) {}

  /// Returns when ready() holds, which reads atomics sequentially consistently. Throws Aborted when
  /// the group is given up, TimeoutError, having given it up, when `peer` has not come in time and
  /// nobody works (report/patience.h).
  template <class Ready>
  void wait(int peer, Ready ready) {
    wait_until(
        ready, [peer] { return peer; }, false);
  }

  /// Returns when has_come(peer) holds for each of the other ranks of `ranks`. It reads atomics
  /// sequentially consistently, and this rank has stored in its own that it has come. check(peer)
  /// may throw; it is called once at least, early for those who were there before.
  ///
  /// Only who finds all the others there rings, by ring(peer): nobody before can be what a sleeper
  /// waits for. The last to store is sure to find them. With more ranks than processors, waking all
  /// of them at each arrival would take twice the time.
  template <class HasCome, class Check, class Ring>
  void wait_for_all(int ranks, HasCome has_come, Check check, Ring ring) {
    const int own = transport_.rank();
    const auto is_here = [&](int rank) { return rank == own || has_come(rank); };
    int first_missing = ranks;
    for (int rank = ranks - 1; rank >= 0; --rank) {
      if (!is_here(rank)) {
        first_missing = rank;
      } else if (rank != own) {
        check(rank);
      }
    }
    if (first_missing == ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != own) ring(rank);
      }
      return;
    }
    const auto all_here = [&] {
      while (first_missing < ranks && is_here(first_missing)) ++first_missing;
      return first_missing == ranks;
    };
    wait_until(
        all_here, [&] { return first_missing; }, true);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank != own) check(rank);
    }
  }

  void throw_if_aborted() const {
    if (group_.aborted()) throw Aborted(*group_.root_cause());
  }

  template <class Failure>
  [[noreturn]] void fail(const std::string& message) {
    if (group_.abort(transport_.rank(), message)) throw Failure(message);
    throw Aborted(*group_.root_cause());
  }
  /// For a failure that may follow from another rank's. Waits a moment for the news of that.
  template <class Failure>
  [[noreturn]] void fail_unless_explained(const std::string& message) {
    if (group_.await_explanation()) throw Aborted(*group_.root_cause());
    fail<Failure>(message);
  }

 private:
  /// `missing` says for whom the wait was, when nobody has come in time. `meets`: nobody leaves
  /// before this rank has come.
  template <class Ready, class Missing>
  void wait_until(Ready ready, Missing missing, bool meets) {
    std::chrono::nanoseconds longest = timeout_of(transport_);
    while (!wait_for(ready, missing, meets, longest)) {
      longest = patience_of(transport_);
      if (longest.count() == 0) fail<TimeoutError>(explain_timeout(transport_, missing()));
    }
  }

  template <class Ready, class Missing>
  bool wait_for(Ready ready, Missing missing, bool meets, std::chrono::nanoseconds longest) {
    SlicedWait wait(longest);
    while (true) {
      const std::chrono::nanoseconds slice = wait.next();
      const bool in_time =
          doorbell_.wait([&] { return ready() || group_.aborted(); }, spin_, slice);
      throw_if_aborted();
      if (in_time || slice.count() == 0) return in_time;
      const int peer = missing();
      if (has_ended(peer) && !ready() && missing() == peer) {
        fail<MismatchError>(explain_end(transport_, peer));
      }
      const auto elsewhere = parted_from(peer, meets);
      if (!elsewhere || ready() || missing() != peer) continue;  // it may have come since
      fail<MismatchError>(
          explain_parting(peer, *elsewhere, transport_.rank(),
                          transport_.recorder().latest().value_or(CollectiveRecord{})));
    }
  }

  /// Where `peer` is, if that is another collective by the same number, in which it waits in
  /// another way: in a message, say, while this rank is at a meeting. Or if it has left a meeting
  /// behind that this rank is at.
  std::optional<CollectiveRecord> parted_from(int peer, bool meets) {
    const CollectiveTag& mine = transport_.recorder().current();
    if (mine.sequence == 0) return {};  // outside of any
    transport_.show_wait();
    auto theirs = transport_.waits_in(peer);
    if (!theirs || theirs->tag == mine) return {};
    const std::int64_t ahead = theirs->tag.sequence - mine.sequence;
    if (ahead < 0 || (ahead > 0 && !meets)) return {};
    return theirs;
  }

  /// Whether `peer` does nothing any more: what has not come by then never will. Another process
  /// may be between two runs of its ranks, and has to be asked; so it is where nothing else would
  /// end the wait, before which all have met.
  bool has_ended(int peer) const {
    if (!group_.holds(peer) && std::isfinite(transport_.timeout_seconds())) return false;
    const auto status = transport_.look_at(peer);
    return status && status->has_ended();
  }

  RanksGroup& group_;
  Transport& transport_;
  Doorbell& doorbell_;
  std::chrono::nanoseconds spin_;
};

}  // namespace ringlet::comm
