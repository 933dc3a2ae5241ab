#include "comm/all_reduce/probe.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/processors.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/collectives.h"
#include "comm/all_reduce/two_level.h"
#include "kernels/elementwise.h"

namespace ringlet::comm {

namespace {

constexpr int kLeastPower = 6;     // 64 bytes
constexpr int kLeastInTurns = 10;  // 1 KiB: all that is smaller takes as long
constexpr int kShort = 12;         // up to 4 KiB a call is timed behind another, a moment later
constexpr int kInCaches = 18;      // up to 256 KiB a call finds what the call before left there
constexpr double kFarBehind = 2;   // times the best: not tried at larger sizes
constexpr double kBehind = 1.6;    // the same: not tried at the sizes between
constexpr double kNoRounds = 4;    // the same in the untimed calls: not worth its rounds
// So little says nothing; where ranks share processors, whose turn it is tells more.
constexpr double kEqual = 1.06, kEqualInTurns = 1.15;

/// How often a strategy is called in a row, and how often its turn comes. Another strategy leaves
/// other lines in other caches, so the first call of a turn does not count.
struct Turns {
  int look;  // calls of the first turn, which meets cold pages; its second half counts
  int settle, timed;
  int fewest, most;

  int calls() const { return settle + timed; }
};

/// What is timed, and how long it took by size.
struct Candidate {
  Strategy strategy;
  std::unique_ptr<AllReduce> all_reduce;
  std::map<int, double> seconds;  // by the power of two of bytes
};

/// Reads a number of each cache line.
void read_lines(const ConstView& data) {
  constexpr std::int64_t kFloatsOfALine = 16;
  const float* const first = data.f32();
  std::uint32_t seen = 0;
  for (std::int64_t i = 0; i < data.count(); i += kFloatsOfALine) {
    seen |= std::bit_cast<std::uint32_t>(first[i]);
  }
  asm volatile("" : : "r"(seen));  // the compiler is to believe that somebody asks
}

class Probe {
 public:
  Probe(Transport& transport, const Strategies& strategies, Stream& stream, const View& memory,
        const ProbeOptions& options)
      : transport_(transport),
        stream_(stream),
        memory_(memory),
        budget_(options.seconds),
        only_least_(options.only_least) {
    most_power_ = std::bit_width(static_cast<std::uint64_t>(options.largest)) - 1;
    for (Strategy& strategy : strategies_over(transport, strategies)) {
      const bool is_the_ring =  // on one machine; the ring itself is timed
          strategy.name == std::string_view(TwoLevelAllReduce::kName) &&
          transport.world().machines == 1;
      if (is_the_ring) continue;
      auto all_reduce = strategy.make(transport);
      candidates_.push_back({std::move(strategy), std::move(all_reduce), {}});
    }
  }

  ProbeResult run() {
    if (candidates_.empty()) return {};
    in_turns_ = take_turns();
    least_power_ = in_turns_ ? kLeastInTurns : kLeastPower;
    if (only_least_) {
      measure(least_power_);
      return result();
    }
    for (int step = 4; step > 0; step /= 2) {
      for (int power = least_power_; power <= most_power_; power += step) {
        const bool is_too_small = in_turns_ && power < kLeastInTurns;
        if (!is_too_small && !is_measured(power)) measure(power);
      }
    }
    return result();
  }

 private:
  using Few = std::vector<Candidate*>;
  using Calls = std::vector<std::vector<double>>;

  /// Whether ranks outnumber the processors that they may run on: a rank that is pinned has one.
  bool take_turns() {
    const int mine = usable_processors();
    const std::vector<float> all =
        gather({static_cast<float>(mine), static_cast<float>(::sched_getcpu())});
    std::set<float> processors;
    for (std::size_t of_rank = 0; of_rank < all.size(); of_rank += 2) {
      processors.insert(all[of_rank + 1]);
    }
    const auto usable = static_cast<int>(all.front());  // rank 0's
    return usable == 1 ? std::ssize(processors) < transport_.size()
                       : transport_.world().machine_size > usable;
  }

  static std::int64_t bytes_of(int power) { return std::int64_t{1} << power; }

  bool is_measured(int power) const { return best_at(power) < INFINITY; }
  double best_at(int power) const {
    double best = INFINITY;
    for (const Candidate& candidate : candidates_) {
      const auto found = candidate.seconds.find(power);
      if (found != candidate.seconds.end()) best = std::min(best, found->second);
    }
    return best;
  }
  /// The next measured size in that direction, or nothing's power.
  int neighbour(int power, int direction) const {
    power = std::min(power, most_power_ + 1);
    for (power += direction; least_power_ <= power && power <= most_power_; power += direction) {
      if (is_measured(power)) return power;
    }
    return -1;
  }

  double left() const { return budget_ - elapsed_; }

  /// Worth trying at a size: next to the front at a size beside; at one that is larger than all
  /// before, whatever may catch up.
  bool is_worth(const Candidate& candidate, int power) const {
    const int below = neighbour(power, -1), above = neighbour(power, +1);
    const auto is_near = [&](int at) {
      const auto found = candidate.seconds.find(at);
      return found != candidate.seconds.end() && found->second <= kBehind * best_at(at);
    };
    if (below >= 0 && above >= 0) return is_near(below) || is_near(above);
    if (below < 0) return true;
    const auto bytes_moved = [&](const Candidate& of) {
      return of.strategy.path_cost(transport_.size(), static_cast<double>(bytes_of(power))).bytes;
    };
    return std::ranges::none_of(candidates_, [&](const Candidate& ahead) {
      return bytes_moved(ahead) <= bytes_moved(candidate) && is_far_ahead(ahead, candidate);
    });
  }
  /// At the two largest sizes at which both were measured: during one, the host may have moved a
  /// virtual machine's processors, or ranks that take turns had bad luck.
  bool is_far_ahead(const Candidate& ahead, const Candidate& behind) const {
    int sizes = 2;
    for (auto at = ahead.seconds.rbegin(); at != ahead.seconds.rend() && sizes > 0; ++at) {
      if (at->first < kLeastInTurns) break;  // which tell of nothing but calls
      const auto found = behind.seconds.find(at->first);
      if (found == behind.seconds.end()) continue;
      if (found->second <= kFarBehind * at->second) return false;
      --sizes;
    }
    return sizes == 0;
  }

  /// What a call of each of these may take, by a smaller size: what that took, and twice what is
  /// stated for the bytes more. Small sums cost what meeting costs, most where ranks take turns.
  double expected_calls(const Few& few, int power) const {
    const int below = neighbour(power, -1);
    double seconds = 0;
    for (const Candidate* candidate : few) {
      const auto found = candidate->seconds.find(below);
      if (found == candidate->seconds.end()) continue;
      seconds += found->second + 2 * (stated(*candidate, power) - stated(*candidate, below));
    }
    return seconds;
  }

  void measure(int power) {
    Few few;
    for (Candidate& candidate : candidates_) {
      if (is_worth(candidate, power)) few.push_back(&candidate);
    }
    const bool is_first = elapsed_ == 0;
    const Turns turns = turns_at(power);
    const double expected =
        (turns.look + turns.fewest * turns.calls()) * expected_calls(few, power);
    if (!is_first && (few.size() < 2 || expected > left() || left() <= 0)) return;
    move_apart();
    const double before = elapsed_;
    const Calls looks = call(few, power, 1, turns.look);
    std::vector<double> quick;
    double called = 0;
    for (const std::vector<double>& seconds : looks) {
      quick.push_back(*std::min_element(seconds.begin() + turns.look / 2, seconds.end()));
      for (const double each : seconds) called += each < INFINITY ? each : 0;
    }
    // Own data written, and all ranks met: where they take turns, as long as the calls.
    const double around = std::max(0.0, (elapsed_ - before - called) / turns.look);
    const double best = *std::ranges::min_element(quick);
    if (best == INFINITY) return measure_in_turns(power);
    Few timed;
    double round = around;
    for (std::size_t i = 0; i < few.size(); ++i) {
      if (quick[i] < INFINITY) few[i]->seconds[power] = quick[i];
      const bool is_known = quick[i] < INFINITY;
      if (is_known && quick[i] > kNoRounds * best) continue;
      timed.push_back(few[i]);
      round += is_known ? quick[i] : best;
    }
    round *= turns.calls();
    if (turns.fewest * round > left()) return;
    // A size may take a third of what is left: the larger ones take longer than all before.
    const double possible = left() / 3 / std::max(round, 1e-9);
    const int count = static_cast<int>(std::clamp<double>(possible, turns.fewest, turns.most));
    Calls all = call(timed, power, count, turns.calls());
    for (std::size_t i = 0; i < timed.size(); ++i) {
      std::vector<double> counting;
      for (std::size_t at = 0; at < all[i].size(); ++at) {
        const bool settles = static_cast<int>(at) % turns.calls() < turns.settle;
        if (!settles) counting.push_back(all[i][at]);
      }
      std::ranges::sort(counting);
      const double quartile = counting[counting.size() / 4];
      if (quartile == INFINITY) return measure_in_turns(power);
      timed[i]->seconds[power] = quartile;
    }
  }

  Turns turns_at(int power) const {
    if (in_turns_) return {.look = 2, .settle = 0, .timed = 1, .fewest = 3, .most = 9};
    if (is_short(power)) return {.look = 6, .settle = 0, .timed = 4, .fewest = 1, .most = 3};
    if (power > kInCaches) return {.look = 2, .settle = 1, .timed = 1, .fewest = 2, .most = 6};
    return {.look = 6, .settle = 1, .timed = 3, .fewest = 1, .most = 3};
  }

  /// How long a short call takes depends on where the call before has left the lines that it uses,
  /// and a rank goes on taking some back when it has its result. A barrier uses some of them, and
  /// would double the time of a quick strategy. So the ranks meet, call it once, and then begin the
  /// call that counts at the same time by the clock, a moment later, as sums of a training do.
  bool is_short(int power) const {
    return !in_turns_ && transport_.peer_access() != nullptr && power <= kShort;
  }

  /// The latest of all ranks' clocks, which are one machine's where is_short(). A barrier.
  std::int64_t common_time() {
    constexpr auto kBytes = std::int64_t{sizeof(std::int64_t)};
    const std::int64_t mine = now_ns();
    std::vector<std::int64_t> all(static_cast<std::size_t>(transport_.size()));
    all_gather(transport_, stream_, ConstView(&mine, {kBytes}, DType::u8),
               View(all.data(), {kBytes * transport_.size()}, DType::u8));
    return *std::ranges::max_element(all);
  }

  /// call(), and a moment in which all ranks are through with it, so that they leave together.
  template <class Call>
  void settle(const Candidate& candidate, int power, Call call) {
    constexpr double kMoment = 1e3, kUnknown = 1e3;  // ns
    const auto found = candidate.seconds.find(power);
    const double expected = found == candidate.seconds.end() ? kUnknown : 1e9 * found->second;
    const auto notice = static_cast<std::int64_t>(kMoment + 2 * expected);
    const std::int64_t leave = common_time() + notice;
    const std::int64_t latest = now_ns() + notice;  // another namespace may have other clocks
    call();
    while (now_ns() < std::min(leave, latest)) {
    }
  }

  /// Other work has processors of theirs, so ranks do take turns from here on: else what had luck
  /// would be compared with nothing.
  void measure_in_turns(int power) {
    in_turns_ = disturbed_ = true;
    for (Candidate& candidate : candidates_) candidate.seconds.erase(power);
    measure(power);
  }

  /// For each of the few the slowest rank's seconds of its calls, in their order: `rounds` times
  /// `calls` in a row. Infinite where two ranks shared a processor while there is one for each: the
  /// system moves them apart soon.
  Calls call(const Few& few, int power, int rounds, int calls) {
    const View data = memory_.slice(0, bytes_of(power) / size_of(memory_.dtype()));
    std::vector<float> mine;  // seconds and processor of each call; last, what has passed
    for (int round = 0; round < rounds; ++round) {
      for (Candidate* candidate : few) {
        for (int number = 0; number < calls; ++number) {
          const auto write = [&] { fill(stream_, 0, data); };
          const auto sum = [&] {
            candidate->all_reduce->run(stream_, data, ReduceOp::sum);
            read_lines(data);  // as an optimiser does: two-shot leaves some in others' caches
          };
          // As gradients are: a rank has just written its own. Where the call before had left the
          // lines, they would tell of that.
          write();
          if (is_short(power)) {
            settle(*candidate, power, [&] { sum(), write(); });
          } else {
            barrier(transport_, stream_);
          }
          const Stopwatch watch;
          sum();
          mine.push_back(static_cast<float>(watch.seconds()));
          mine.push_back(static_cast<float>(::sched_getcpu()));
        }
      }
    }
    mine.push_back(static_cast<float>(watch_.seconds()));
    const std::size_t each = mine.size();
    const std::vector<float> all = gather(mine);
    elapsed_ = all[each - 1];  // rank 0's, so that all ranks decide alike
    Calls slowest(few.size());
    for (std::size_t at = 0; at + 1 < each; at += 2) {
      double seconds = 0;
      std::set<float> processors;
      for (std::size_t of_rank = at; of_rank < all.size(); of_rank += each) {
        seconds = std::max<double>(seconds, all[of_rank]);
        processors.insert(all[of_rank + 1]);
      }
      const bool are_apart = in_turns_ || std::ssize(processors) == transport_.size();
      const std::size_t turn = at / 2 / static_cast<std::size_t>(calls);
      slowest[turn % few.size()].push_back(are_apart ? seconds : INFINITY);
    }
    return slowest;
  }

  std::vector<float> gather(const std::vector<float>& mine) {
    std::vector<float> all(mine.size() * static_cast<std::size_t>(transport_.size()));
    const auto count_of = [](const auto& of) { return static_cast<std::int64_t>(of.size()); };
    all_gather(transport_, stream_, ConstView(mine.data(), {count_of(mine)}, DType::f32),
               View(all.data(), {count_of(all)}, DType::f32));
    return all;
  }

  /// Returns when no two ranks share a processor, or after some milliseconds.
  void move_apart() {
    constexpr double kPatience = 5e-3, kPause = 50e-6;
    if (in_turns_) return;
    for (const Stopwatch watch;;) {
      const std::vector<float> all =
          gather({static_cast<float>(::sched_getcpu()), static_cast<float>(watch.seconds())});
      std::set<float> processors;
      for (std::size_t of_rank = 0; of_rank < all.size(); of_rank += 2) {
        processors.insert(all[of_rank]);
      }
      if (std::ssize(processors) == transport_.size() || all[1] > kPatience) return;
      for (const Stopwatch pause; pause.seconds() < kPause;) relax_processor();
    }
  }

  /// The measured seconds; between two measured sizes as they grow with the bytes from one to the
  /// other; beyond the largest in proportion to the bytes, where these take most of the time; else
  /// by the stated costs of the bytes, since what meeting takes does not grow. Infinite where
  /// nothing is known, and for what was no longer worth trying at the larger of two sizes.
  double seconds_at(const Candidate& candidate, int power) const {
    constexpr int kMostlyBytes = 18;  // 256 KiB
    const int known = is_measured(power) ? power : neighbour(power, -1);
    const auto found = candidate.seconds.find(known);
    if (found == candidate.seconds.end()) return INFINITY;
    const int next = neighbour(power, +1);
    if (known == power) return found->second;
    if (next >= 0) {
      const auto above = candidate.seconds.find(next);
      if (above == candidate.seconds.end()) return INFINITY;
      return seconds_between({bytes_of(known), {}, found->second},
                             {bytes_of(above->first), {}, above->second}, bytes_of(power));
    }
    if (known >= kMostlyBytes) return found->second * std::ldexp(1.0, power - known);
    return found->second + stated(candidate, power) - stated(candidate, known);
  }
  double stated(const Candidate& candidate, int power) const {
    return predicted_seconds(candidate.strategy, transport_, static_cast<double>(bytes_of(power)));
  }

  const Candidate* choose(int power) const {
    std::vector<double> measured, by_costs;
    for (const Candidate& candidate : candidates_) {
      measured.push_back(seconds_at(candidate, power));
      by_costs.push_back(stated(candidate, power));
    }
    return &candidates_[choose_of(measured, by_costs, in_turns_ ? kEqualInTurns : kEqual)];
  }

  ProbeResult result() const {
    constexpr int kMostPower = 30;  // 1 GiB
    ProbeResult result{.table = {}, .times = {}, .seconds = elapsed_, .disturbed = disturbed_};
    for (int power = least_power_; power <= most_power_; ++power) {
      for (const Candidate& candidate : candidates_) {
        const auto found = candidate.seconds.find(power);
        if (found == candidate.seconds.end()) continue;
        result.times.push_back({bytes_of(power), candidate.strategy.name, found->second});
      }
    }
    const Candidate* taken = nullptr;
    for (int power = least_power_; power <= kMostPower; ++power) {
      const Candidate* next = choose(power);
      if (next == taken) continue;
      result.table.push_back(
          {transport_.size(), taken == nullptr ? 0 : bytes_of(power), next->strategy.name});
      taken = next;
    }
    return result;
  }

  Transport& transport_;
  Stream& stream_;
  View memory_;
  double budget_;
  bool only_least_;
  double elapsed_ = 0;
  int least_power_ = kLeastPower, most_power_;
  bool in_turns_ = false, disturbed_ = false;
  std::vector<Candidate> candidates_;
  Stopwatch watch_;
};

}  // namespace

double seconds_between(const ProbedTime& fewer, const ProbedTime& more, std::int64_t bytes) {
  const auto more_than_fewer = static_cast<double>(bytes - fewer.bytes);
  return std::lerp(fewer.seconds, more.seconds,
                   more_than_fewer / static_cast<double>(more.bytes - fewer.bytes));
}

std::size_t choose_of(std::span<const double> measured, std::span<const double> stated,
                      double equal) {
  constexpr double kAlike = 1.05;
  const double best = std::ranges::min(measured);
  const auto is_equal = [&](std::size_t i) { return measured[i] <= equal * best; };
  double least = INFINITY;
  for (std::size_t i = 0; i < stated.size(); ++i) {
    if (is_equal(i)) least = std::min(least, stated[i]);
  }
  std::size_t chosen = measured.size();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!is_equal(i) || stated[i] > kAlike * least) continue;
    const auto both_of = [&](std::size_t of) { return std::pair(measured[of], stated[of]); };
    if (chosen == measured.size() || both_of(i) < both_of(chosen)) chosen = i;
  }
  return chosen;
}

ProbeResult probe(Transport& transport, const Strategies& strategies, Stream& stream,
                  const View& memory, const ProbeOptions& options) {
  if (transport.size() == 1) return {};
  Probe probe(transport, strategies, stream, memory, options);
  return probe.run();
}

}  // namespace ringlet::comm
