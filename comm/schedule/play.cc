#include "comm/schedule/play.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "comm/schedule/check.h"
#include "comm/schedule/shared_links.h"
#include "comm/schedule/walk.h"

namespace ringlet::comm {

namespace {

class Player {
 public:
  Player(const Schedule& schedule, const Network& network, const PlayListener& listener,
         std::vector<double> begin_s)
      : schedule_(schedule),
        network_(network),
        listener_(listener),
        walk_(schedule, *this),
        links_(network.machines(), network.between.seconds_per_byte),
        come_(schedule.ranks.size()),
        end_(std::move(begin_s)) {
    for (int rank = 0; rank < schedule.size(); ++rank) {
      slowest_ = std::max(slowest_, network.slow(rank));
    }
  }

  std::vector<double> play() {
    walk_.begin();
    walk_.run();
    while (const auto passed = links_.next()) {
      const SharedLinks::Message& message = passed->message;
      arrive(message.from, message.to, message.begin_s, passed->at_s, network_.between);
      walk_.run();
    }
    if (!walk_.has_ended()) throw ContractError(find_problem(schedule_).text);
    return end_;
  }

  void arrived(int rank) { come(rank) = end(rank); }

  void message(int from, int to) {
    const std::int64_t sent = schedule_.out_bytes(walk_.step(from));
    if (sent != schedule_.in_bytes(walk_.step(to)))
      throw ContractError(find_problem(schedule_).text);
    const double begin = std::max(come(from), come(to));
    const double bytes = static_cast<double>(sent) * slow(from, to);
    const int out = network_.machine(from), in = network_.machine(to);
    if (out != in) {
      links_.add({from, to, out, in, bytes, begin});
    } else {
      const CostModel& costs = network_.inside;
      arrive(from, to, begin, begin + bytes * costs.seconds_per_byte, costs);
    }
  }

  void touch(int rank, const Touch& touch) {
    const int ranks = schedule_.size();
    const auto moved = static_cast<double>(moved_bytes(touch, rank, ranks));
    const auto reduced = static_cast<double>(reduced_bytes(touch, ranks));
    end(rank) =
        come(rank) + network_.slow(rank) * (moved * network_.inside.seconds_per_byte +
                                            reduced * network_.inside.seconds_per_reduced_byte);
    tell_step(rank);
  }

  void meeting() {
    const double all =
        *std::max_element(come_.begin(), come_.end()) + network_.inside.latency_s * slowest_;
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      end(rank) = all;
      tell_step(rank);
    }
  }

 private:
  double& come(int rank) { return come_[static_cast<std::size_t>(rank)]; }
  double& end(int rank) { return end_[static_cast<std::size_t>(rank)]; }
  double slow(int a, int b) const { return std::max(network_.slow(a), network_.slow(b)); }

  /// Its last byte left at `passed_s`.
  void arrive(int from, int to, double begin_s, double passed_s, const CostModel& costs) {
    const Step& taken = walk_.step(to);
    const double at = passed_s + costs.latency_s * slow(from, to);
    double combined = at;
    if (taken.combine != Combine::copy) {
      combined += static_cast<double>(schedule_.in_bytes(taken)) * costs.seconds_per_reduced_byte *
                  network_.slow(to);
    }
    end(from) = std::max(end(from), at);
    end(to) = std::max(end(to), combined);
    if (listener_.message) {
      listener_.message({from, to, walk_.number(from), walk_.number(to), begin_s, at, combined});
    }
    tell_step(from, to);
    walk_.end_message(from, to);
  }

  void tell_step(int rank) {
    if (listener_.step) listener_.step({rank, walk_.number(rank), come(rank), end(rank)});
  }
  void tell_step(int from, int to) {
    if (!listener_.step) return;
    for (const int rank : {from, to}) {
      if (walk_.open_sides(rank) == 1) tell_step(rank);
    }
  }

  const Schedule& schedule_;
  const Network& network_;
  const PlayListener& listener_;
  Walk<Player> walk_;
  SharedLinks links_;
  double slowest_ = 1;
  std::vector<double> come_;  // when each rank came to its step
  std::vector<double> end_;   // when the sides of it that have ended did so
};

}  // namespace

std::vector<double> play(const Schedule& schedule, const Network& network,
                         const PlayListener& listener, std::vector<double> begin_s) {
  network.check();
  require(schedule.size() == network.ranks, "play",
          "the network has as many ranks as the schedule");
  begin_s.resize(schedule.ranks.size());
  return Player(schedule, network, listener, std::move(begin_s)).play();
}

double seconds_of(const Schedule& schedule, const Network& network) {
  const std::vector<double> ends = play(schedule, network);
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

}  // namespace ringlet::comm
