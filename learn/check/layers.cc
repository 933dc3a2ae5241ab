#include "learn/check/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "learn/check/costs.h"
#include "learn/check/hooks.h"
#include "learn/check/measure.h"
#include "learn/check/threads.h"
#include "learn/check/trial.h"

namespace ringlet::learn {

namespace {

constexpr int kMostRanks = 8;
constexpr std::int64_t kMostElements = 17;  // of the cases that are all tried
constexpr comm::CostModel kInside{2e-6, 1 / 100e9, 0}, kBetween{10e-6, 1 / 12.5e9, 0};

class Layers {
 public:
  Layers(const Chapter& chapter, const LearnersFile& file, Board& board)
      : chapter_(chapter), file_(file), board_(board) {}

  /// Every small case.
  void small_cases() {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks)
      all_lengths(comm::one_machine(ranks, kInside));
    if (!chapter_.has_machines) return;
    for (const auto& [machines, each] : {std::pair{2, 2}, {3, 2}, {2, 4}, {4, 2}, {5, 1}}) {
      all_lengths(comm::equal_machines(machines, each, kBetween, kInside));
    }
    for (const std::string_view machine_of : {"0111", "0001", "0101", "00011", "00122"}) {
      comm::Network network{static_cast<int>(machine_of.size()), kInside, kBetween, {}, {}};
      Case at;
      std::copy(machine_of.begin(), machine_of.end(), at.machine_of.begin());
      for (const char machine : machine_of) network.machine_of.push_back(machine - '0');
      all_lengths(network, at);
    }
  }

  /// Other types, sums that round, and lengths that are cut at multiples of a cache line.
  void other_cases() {
    for (const int ranks : {2, 3}) {
      Trial trial = trial_of(comm::one_machine(ranks, kInside));
      for (const DType dtype : {DType::bf16, DType::f16, DType::i32}) {
        for (const std::int64_t elements : {1, 5}) {
          for (const ReduceOp op : kReduceOps) {
            trial.run({.elements = elements, .op = op, .dtype = dtype}, Fill::place);
          }
        }
      }
    }
    for (const int ranks : {3, 4, 5}) {
      trial_of(comm::one_machine(ranks, kInside)).run({.elements = kMostElements}, Fill::rounds);
    }
    for (const int ranks : {2, 3, kMostRanks}) {
      Trial trial = trial_of(comm::one_machine(ranks, kInside));
      for (const std::int64_t elements : {1, 9001, 17}) {
        trial.run({.elements = elements}, Fill::place);
      }
      for (const ReduceOp op : kReduceOps) {
        if (ranks == 3) trial.run({.elements = 9001, .op = op}, Fill::place);
      }
    }
    Trial many = trial_of(comm::one_machine(13, kInside));
    for (const ReduceOp op : kReduceOps) many.run({.elements = 29, .op = op}, Fill::place);
  }

  /// As many as LeNet's gradients: memory of a fixed size has to have room for a training. It comes
  /// behind the races, which short data show.
  void long_case() {
    trial_of(comm::one_machine(2, kInside)).run({.elements = 129'068}, Fill::place);
  }

  /// Returns what there is to say of a file that passes.
  std::string bytes() {
    for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
      Trial trial = trial_of(comm::one_machine(ranks, kInside));
      trial.run({.elements = kMeasuredElements}, Fill::who);
      check_bound(chapter_, ranks, trial.totals(), board_);
    }
    if (chapter_.bound != Bound::two_levels) return {};
    return check_levels(file_.strategy.make, board_);
  }

  /// Where the longest data show one, the shortest that do are looked for.
  void races() {
    for (const int ranks : {2, 3, 4}) {
      Trial trial = trial_of(comm::one_machine(ranks, kInside));
      if (!race_of(trial, kMostElements)) continue;
      for (std::int64_t elements = 0; elements <= kMostElements; ++elements) {
        if (const auto race = race_of(trial, elements)) {
          board_.conclude(Verdict::race, words_of(*race));
        }
      }
    }
  }

 private:
  std::optional<comm::Race> race_of(Trial& trial, std::int64_t elements) {
    g_keeps_freed_memory = true;
    trial.run({.elements = elements}, Fill::who);
    g_keeps_freed_memory = false;
    board_.enter('D');
    board_.work_alone(true);
    std::optional<comm::Race> race = trial.race();
    board_.work_alone(false);
    return race;
  }

  static std::string words_of(const comm::Race& race) {
    if (race.owner != comm::kNobody) return race.text;
    return "memory that ranks share beside their data" + race.text.substr(race.text.find(':'));
  }

  void all_lengths(const comm::Network& network, Case at = {}) {
    Trial trial = trial_of(network);
    for (at.elements = 0; at.elements <= kMostElements; ++at.elements) {
      for (const ReduceOp op : kReduceOps) {
        at.op = op;
        trial.run(at, Fill::who);
        trial.run(at, Fill::place);
      }
    }
  }

  Trial trial_of(const comm::Network& network) const {
    return {chapter_, file_.strategy.make, network, {}, board_};
  }

  const Chapter& chapter_;
  const LearnersFile& file_;
  Board& board_;
};

}  // namespace

void check_layers(const Chapter& chapter, const LearnersFile& file, Board& board,
                  const std::string& trace) {
  Layers layers(chapter, file, board);
  layers.small_cases();
  layers.other_cases();
  const std::string levels = layers.bytes();
  layers.races();
  layers.long_case();
  if (chapter.has_costs) check_costs(file.strategy, board);
  const std::string problem = check_threads(chapter, file.strategy, trace, board);
  const Costs own = measure(chapter, file.strategy.make, board);
  const Costs star = measure(chapter, comm::Strategies().find("naive")->make, board);
  board.pass({.ranks = kMeasuredRanks, .elements = kMeasuredElements}, own,
             words_of_passed(chapter, own, star) + levels + problem);
}

void check_eager(const Chapter& chapter, const LearnersFile& file, std::int64_t eager_bytes,
                 Board& board) {
  constexpr std::int64_t kLongest = 1 << 18;  // elements
  for (std::int64_t elements = 1; elements <= kLongest; elements *= 2) {
    Trial trial(chapter, file.strategy.make, comm::one_machine(kMeasuredRanks, kInside),
                {.eager_bytes = eager_bytes}, board);
    trial.run({.elements = elements}, Fill::who);
  }
  board.pass({.ranks = kMeasuredRanks, .elements = kLongest}, {},
             fmt::format("4 ranks come to an end, up to n = {}, where messages of up to {} bytes "
                         "leave at once",
                         kLongest, eager_bytes));
}

}  // namespace ringlet::learn
