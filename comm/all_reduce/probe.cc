#include "comm/all_reduce/probe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>

#include "base/stopwatch.h"
#include "comm/all_reduce/collectives.h"
#include "comm/all_reduce/two_level.h"
#include "kernels/elementwise.h"

namespace ringlet::comm {

namespace {

constexpr int kLeastPower = 10;  // 1 KiB
constexpr int kFewestRounds = 3, kMostRounds = 9;
constexpr int kUntimed = 2;       // shared memory has two halves, and a first call meets cold pages
constexpr double kFarBehind = 2;  // times the best: not tried at larger sizes
constexpr double kBehind = 1.6;   // the same: not tried at the sizes between
constexpr double kNoRounds = 2.5;  // the same in the untimed calls: not worth its rounds
constexpr double kEqual = 1.03;    // such a little is no reason to change

/// What is timed, and how long it took by size.
struct Candidate {
  Strategy strategy;
  std::unique_ptr<AllReduce> all_reduce;
  std::map<int, double> seconds;  // by the power of two of bytes
};

class Probe {
 public:
  Probe(Transport& transport, const Strategies& strategies, Stream& stream, const View& memory,
        const ProbeOptions& options)
      : transport_(transport), stream_(stream), memory_(memory), budget_(options.seconds) {
    most_power_ = std::bit_width(static_cast<std::uint64_t>(options.largest)) - 1;
    for (Strategy& strategy : probed_strategies(strategies, transport)) {
      auto all_reduce = strategy.make(transport);
      candidates_.push_back({std::move(strategy), std::move(all_reduce), {}});
    }
  }

  ProbeResult run() {
    for (int step = 4; step > 0; step /= 2) {
      for (int power = kLeastPower; power <= most_power_; power += step) {
        if (!is_measured(power)) measure(power);
      }
    }
    return result();
  }

 private:
  using Few = std::vector<Candidate*>;

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
    for (power += direction; kLeastPower <= power && power <= most_power_; power += direction) {
      if (is_measured(power)) return power;
    }
    return -1;
  }

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
  /// At the largest size at which both were measured.
  static bool is_far_ahead(const Candidate& ahead, const Candidate& behind) {
    for (auto at = ahead.seconds.rbegin(); at != ahead.seconds.rend(); ++at) {
      const auto found = behind.seconds.find(at->first);
      if (found != behind.seconds.end()) return found->second > kFarBehind * at->second;
    }
    return false;
  }

  /// What a round of these takes at most, by a smaller size. 0 where none was measured.
  double expected_round(const Few& few, int power) const {
    const int below = neighbour(power, -1);
    double seconds = 0;
    for (const Candidate* candidate : few) {
      const auto found = candidate->seconds.find(below);
      if (found != candidate->seconds.end()) seconds += found->second;
    }
    return std::ldexp(seconds, power - below);
  }

  void measure(int power) {
    Few few;
    for (Candidate& candidate : candidates_) {
      if (is_worth(candidate, power)) few.push_back(&candidate);
    }
    const double left = budget_ - elapsed_;
    if (left <= 0 && power != kLeastPower) return;
    if ((kUntimed + 1) * expected_round(few, power) > left) return;
    std::vector<double> first = rounds(few, power, kUntimed);
    first.erase(first.begin(), first.end() - static_cast<std::ptrdiff_t>(few.size()));
    const double best = *std::ranges::min_element(first);
    Few timed;
    double round = 0;
    for (std::size_t i = 0; i < few.size(); ++i) {
      if (first[i] > kNoRounds * best) continue;
      timed.push_back(few[i]);
      round += first[i];
    }
    // A size may take a third of what is left: the larger ones take longer than all before.
    const double possible = (budget_ - elapsed_) / 3 / std::max(round, 1e-9);
    const int count = static_cast<int>(std::clamp<double>(possible, kFewestRounds, kMostRounds));
    const std::vector<double> seconds = rounds(timed, power, count);
    for (std::size_t i = 0; i < timed.size(); ++i) {
      std::vector<double> of_rounds;
      for (std::size_t at = i; at < seconds.size(); at += timed.size()) {
        of_rounds.push_back(seconds[at]);
      }
      std::ranges::sort(of_rounds);
      timed[i]->seconds[power] = of_rounds[of_rounds.size() / 4];
    }
    for (std::size_t i = 0; i < few.size(); ++i) {
      few[i]->seconds.try_emplace(power, first[i]);  // those that had no rounds
    }
  }

  /// The slowest rank's seconds of each call: those of a round one after another.
  std::vector<double> rounds(const Few& few, int power, int count) {
    const View data = memory_.slice(0, bytes_of(power) / size_of(memory_.dtype()));
    std::vector<float> mine;
    for (int round = 0; round < count; ++round) {
      for (Candidate* candidate : few) {
        barrier(transport_, stream_);
        const Stopwatch watch;
        candidate->all_reduce->run(stream_, data, ReduceOp::sum);
        mine.push_back(static_cast<float>(watch.seconds()));
      }
    }
    mine.push_back(static_cast<float>(watch_.seconds()));
    const std::size_t each = mine.size();
    std::vector<float> all(each * static_cast<std::size_t>(transport_.size()));
    const auto count_of = [](const auto& of) { return static_cast<std::int64_t>(of.size()); };
    all_gather(transport_, stream_, ConstView(mine.data(), {count_of(mine)}, DType::f32),
               View(all.data(), {count_of(all)}, DType::f32));
    elapsed_ = all[each - 1];  // rank 0's, so that all ranks decide alike
    std::vector<double> slowest(each - 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % each == each - 1) continue;
      slowest[i % each] = std::max<double>(slowest[i % each], all[i]);
    }
    return slowest;
  }

  ProbeResult result() const {
    ProbeResult result{.table = {}, .times = {}, .seconds = elapsed_};
    std::string taken;
    for (int power = kLeastPower; power <= most_power_; ++power) {
      const double best = best_at(power);
      if (best == INFINITY) continue;
      const Candidate* next = nullptr;
      for (const Candidate& candidate : candidates_) {
        const auto found = candidate.seconds.find(power);
        if (found == candidate.seconds.end()) continue;
        result.times.push_back({bytes_of(power), candidate.strategy.name, found->second});
        const bool stays = candidate.strategy.name == taken;
        if (found->second > kEqual * best) continue;
        if (next == nullptr || stays) next = &candidate;
      }
      if (next->strategy.name == taken) continue;
      taken = next->strategy.name;
      const bool first = result.table.empty();
      result.table.push_back({transport_.size(), first ? 0 : bytes_of(power), taken});
    }
    return result;
  }

  Transport& transport_;
  Stream& stream_;
  View memory_;
  double budget_;
  double elapsed_ = 0;
  int most_power_;
  std::vector<Candidate> candidates_;
  Stopwatch watch_;
};

}  // namespace

std::vector<Strategy> probed_strategies(const Strategies& strategies, Transport& transport) {
  std::vector<Strategy> candidates = strategies.all();
  std::erase_if(candidates, [&](const Strategy& strategy) {
    const bool is_a_ring =  // for all but the ring itself, on one machine
        strategy.name == std::string_view(TwoLevelAllReduce::kName) &&
        transport.world().machines == 1;
    return is_a_ring || needs_engine(strategy.needs) || !has(transport, strategy.needs);
  });
  std::ranges::stable_partition(
      candidates, [](const Strategy& strategy) { return strategy.needs == Needs::peer_access; });
  return candidates;
}

ProbeResult probe(Transport& transport, const Strategies& strategies, Stream& stream,
                  const View& memory, const ProbeOptions& options) {
  if (transport.size() == 1) return {};
  Probe probe(transport, strategies, stream, memory, options);
  return probe.run();
}

}  // namespace ringlet::comm
