// Chapter 7: buckets are started once, full, in one order on all ranks and as soon as may be; and
// their size hides the sums about as well as the best one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "buckets.h"
#include "learn.h"
#include "learn/check/chapter_check.h"

namespace ringlet::learn {

namespace {

/// A rank's step: it counts what is final, and looks at each bucket that is started. Ranks take
/// turns, as replicas do that go through backward at the same time.
class Rank {
 public:
  Rank(Board& board, int number)
      : board_(board), number_(number), buckets_(make_buckets([this](int b) { start(b); })) {
    if (buckets_ == nullptr) board.conclude(Verdict::crash, "make_buckets() returns nothing");
  }

  void begin_step(const std::vector<int>& gradients, std::mt19937& random) {
    lacking_ = gradients;
    started_.clear();
    order_.clear();
    done_ = 0;
    for (std::size_t b = 0; b < gradients.size(); ++b) {
      order_.insert(order_.end(), static_cast<std::size_t>(gradients[b]), static_cast<int>(b));
    }
    std::shuffle(order_.begin(), order_.end(), random);
    buckets_->begin_step(gradients);
    require_started();
  }

  /// The next gradient becomes final, in an order of this rank's own.
  void go_on() {
    const int bucket = order_[done_++];
    --lacking_[static_cast<std::size_t>(bucket)];
    buckets_->ready(bucket);
    require_started();
  }

  const std::vector<int>& started() const { return started_; }

 private:
  void start(int bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    if (lacking_.empty()) {
      board_.conclude(
          Verdict::out_of_range,
          fmt::format("rank {} starts bucket {} before a step begins", number_, bucket));
    }
    if (bucket < 0 || b >= lacking_.size()) {
      board_.conclude(Verdict::out_of_range,
                      fmt::format("rank {} starts bucket {}; there are buckets 0 to {}", number_,
                                  bucket, lacking_.size() - 1));
    }
    if (std::find(started_.begin(), started_.end(), bucket) != started_.end()) {
      board_.conclude(Verdict::wrong_values,
                      fmt::format("rank {} sums bucket {} twice in a step", number_, bucket));
    }
    if (lacking_[b] > 0) {
      board_.conclude(
          Verdict::race,
          fmt::format("rank {} sums bucket {} while backward still writes {} of its gradients",
                      number_, bucket, lacking_[b]));
    }
    started_.push_back(bucket);
  }

  /// Where the started ones are an index order so far, the next one must not be full already.
  void require_started() const {
    const std::size_t next = started_.size();
    if (next == lacking_.size() || lacking_[next] > 0) return;
    for (std::size_t b = 0; b < next; ++b) {
      if (started_[b] != static_cast<int>(b)) return;  // the comparison of ranks will tell
    }
    board_.conclude(
        Verdict::wrong_values,
        fmt::format(
            "rank {}: after {} gradient{} bucket {} is full, all before it are started, and "
            "it is not",
            number_, done_, done_ == 1 ? "" : "s", next));
  }

  Board& board_;
  int number_;
  std::vector<int> lacking_, started_;
  std::vector<int> order_;  // in which gradients become final: their buckets
  std::size_t done_ = 0;    // of these
  std::unique_ptr<Buckets> buckets_;
};

/// A collective meets the other rank's next one, whatever bucket that is of.
void require_same_order(Board& board, const std::vector<std::unique_ptr<Rank>>& ranks,
                        std::size_t buckets) {
  const std::vector<int>& first = ranks[0]->started();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<int>& own = ranks[rank]->started();
    if (own.size() < buckets) {
      board.conclude(Verdict::wrong_values,
                     fmt::format("rank {} has summed {} of {} buckets when all gradients are final",
                                 rank, own.size(), buckets));
    }
    const auto [a, b] = std::mismatch(first.begin(), first.end(), own.begin());
    if (a == first.end()) continue;
    board.conclude(
        Verdict::deadlock,
        fmt::format("as number {} rank 0 sums bucket {} and rank {} bucket {}: sums that "
                    "do not belong together wait for each other",
                    a - first.begin() + 1, *a, rank, *b));
  }
}

/// Steps of these numbers of gradients by bucket.
using Steps = std::vector<std::vector<int>>;

/// Whose turn it is, chance says: of a rank's turns the first begins its step, and with each other
/// one more gradient is final.
void run_step(const std::vector<std::unique_ptr<Rank>>& ranks, const std::vector<int>& gradients,
              std::mt19937& random) {
  const auto turns =
      static_cast<std::size_t>(1 + std::accumulate(gradients.begin(), gradients.end(), 0));
  std::vector<std::size_t> order;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) order.insert(order.end(), turns, rank);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<bool> has_begun(ranks.size());
  for (const std::size_t rank : order) {
    if (has_begun[rank]) {
      ranks[rank]->go_on();
    } else {
      has_begun[rank] = true;
      ranks[rank]->begin_step(gradients, random);
    }
  }
}

void check_steps(Board& board, const Steps& steps) {
  constexpr int kMostRanks = 4, kTurns = 5;
  std::mt19937 random(7);
  for (int size = 1; size <= kMostRanks; ++size) {
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<Rank>(board, rank));
    for (const std::vector<int>& gradients : steps) {
      const int all = std::accumulate(gradients.begin(), gradients.end(), 0);
      board.begin('A', {.ranks = size, .elements = all});
      for (int turn = 0; turn < kTurns; ++turn) {
        run_step(ranks, gradients, random);
        require_same_order(board, ranks, gradients.size());
      }
    }
  }
}

void check_order(Board& board) {
  check_steps(board, {{1}, {2}, {1, 1}, {2, 1}, {1, 2, 1}, {3, 1, 2, 1}, {1, 1, 1, 1}, {5, 5, 5}});
  check_steps(board, {{0}, {0, 1}, {1, 0}, {2, 0, 2}, {4, 0, 0, 3}});  // some are full at once
}

constexpr int kLayers = 100;

/// Seconds of sums behind backward, for buckets of so many of the equal layers.
double sticking_out(const Overlap& overlap, int layers) {
  double free = 0;
  for (int done = 0; done < kLayers;) {
    const int end = std::min(done + layers, kLayers);
    const double final_s = overlap.backward_s * end / kLayers;
    const double bytes = overlap.all_bytes * (end - done) / kLayers;
    free = std::max(final_s, free) + overlap.latency_s + bytes / overlap.bytes_per_s;
    done = end;
  }
  return free - overlap.backward_s;
}

void check_size(Board& board, const Overlap& overlap) {
  constexpr double kAllowed = 1.15;
  const double bytes = bucket_bytes(overlap);
  const std::string link =
      fmt::format("{:.0f} MB, backward {:.0f} ms, latency {:g} us, {:g} GB/s: buckets of {:g} MB",
                  overlap.all_bytes / 1e6, 1e3 * overlap.backward_s, 1e6 * overlap.latency_s,
                  overlap.bytes_per_s / 1e9, bytes / 1e6);
  if (!(bytes > 0) || !std::isfinite(bytes)) {
    board.conclude(Verdict::out_of_range, link + "; a bucket has some bytes");
  }
  const double layers = std::ceil(bytes / overlap.all_bytes * kLayers - 1e-9);
  const double own = sticking_out(overlap, static_cast<int>(std::clamp(layers, 1.0, 100.0)));
  double best = own;
  for (int size = 1; size <= kLayers; ++size) best = std::min(best, sticking_out(overlap, size));
  // Where sums alone take longer than backward, sizes differ in what comes on top of that.
  const double unavoidable =
      std::max(0.0, overlap.all_bytes / overlap.bytes_per_s - overlap.backward_s);
  if (own - unavoidable <= kAllowed * (best - unavoidable)) return;
  std::string words =
      fmt::format("{}: {:.2f} ms stick out behind backward; with the best size {:.2f}", link,
                  1e3 * own, 1e3 * best);
  if (unavoidable > 0) words += fmt::format(", of which no size hides {:.2f}", 1e3 * unavoidable);
  board.conclude(Verdict::wrong_values, words);
}

}  // namespace

void check_chapter(Board& board) {
  check_order(board);
  board.begin('C', {});
  check_size(board, {100e6, 0.1, 1e-3, 10e9});
  check_size(board, {4e6, 0.01, 2e-3, 1e9});
  check_size(board, {100e6, 0.03, 1e-3, 5e9});
  check_size(board, {100e6, 0.1, 100e-6, 0.5e9});
  board.pass({}, {},
             "buckets go in one order on all ranks, full and at once, and little sticks out");
}

}  // namespace ringlet::learn
