// Chapter 0: the ranks' shares tile the batch, and what they hand in adds up to the gradient of one
// device.
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "learn.h"
#include "learn/check/chapter_check.h"
#include "split.h"

namespace ringlet::learn {

namespace {

constexpr int kMostRanks = 8;
constexpr double kNear = 1e-6;  // of the gradient: who counts in float is right

/// Each rank asks for itself alone, whenever it comes to it.
template <class Ask>
void require_same_backwards(Board& board, int ranks, Ask ask) {
  using Answer = decltype(ask(0));
  std::vector<Answer> answers;
  for (int rank = 0; rank < ranks; ++rank) answers.push_back(ask(rank));
  for (int rank = ranks - 1; rank >= 0; --rank) {
    if (ask(rank) == answers[static_cast<std::size_t>(rank)]) continue;
    board.conclude(Verdict::wrong_values,
                   fmt::format("rank {} has another answer where the ranks behind it ask first; "
                               "each rank is a program of its own and asks for itself alone",
                               rank));
  }
}

/// Rank by rank, from the beginning.
void check_shares(Board& board, int ranks, int batch) {
  int reached = 0, first = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Share share = share_of(rank, ranks, batch);
    const int images = share.end - share.begin;
    if (rank == 0) first = images;
    const auto wrong = [&](Verdict verdict, const std::string& why) {
      board.conclude(verdict, fmt::format("rank {} has the images from {} to {}, that is {}; {}",
                                          rank, share.begin, share.end, images, why));
    };
    if (share.begin < 0 || images < 0 || share.end > batch) {
      wrong(Verdict::out_of_range, fmt::format("the batch has those from 0 to {}", batch));
    }
    if (share.begin != reached) {
      wrong(Verdict::wrong_values, fmt::format("the ranks before it have those to {}", reached));
    }
    const int fewest = batch / ranks, most = (batch + ranks - 1) / ranks;
    if (images < fewest || images > most || images > first) {
      wrong(Verdict::wrong_values,
            "shares differ by one image at most, and the larger ones come first");
    }
    first = images;
    reached = share.end;
  }
  if (reached != batch) {
    board.conclude(Verdict::wrong_values,
                   fmt::format("all ranks together have {} of {} images", reached, batch));
  }
  require_same_backwards(board, ranks, [ranks, batch](int rank) {
    const Share share = share_of(rank, ranks, batch);
    return std::pair(share.begin, share.end);
  });
}

/// No two images have the same gradient, and no two shares the same mean.
double gradient_of(int image) { return 1 + image + 0.25 * image * image; }

double sum_of(int begin, int end) {
  double sum = 0;
  for (int image = begin; image < end; ++image) sum += gradient_of(image);
  return sum;
}

double mean_of(const Share& share) {
  return share.begin == share.end ? 0 : sum_of(share.begin, share.end) / (share.end - share.begin);
}

bool is_near(double a, double b) { return std::abs(a - b) <= kNear * (1 + std::abs(b)); }

/// What a wrong sum is instead, where that is a well-known thing.
std::string known_as(double sum, double sum_of_means, double wanted, int ranks, int batch) {
  if (sum == 0) return ": in C++ own / batch of two ints is 0 where own is less than batch";
  if (is_near(sum, sum_of_means / ranks)) {
    return ": that is the mean of the ranks' means, and these have different numbers of images";
  }
  if (is_near(sum, sum_of_means)) return ": that is the sum of the ranks' means";
  if (is_near(sum, wanted * batch)) return ": that is the sum over all images, not their mean";
  if (std::isnan(sum)) return ": look at a rank that has no image";
  return "";
}

void check_contributions(Board& board, int ranks, int batch) {
  double sum = 0, sum_of_means = 0;
  const auto handed_in_by = [ranks, batch](const Share& share) {
    const int own = share.end - share.begin;
    return contribution(mean_of(share), own, ranks, batch);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const Share share = share_of(rank, ranks, batch);
    sum += handed_in_by(share);
    sum_of_means += mean_of(share);
  }
  const double wanted = sum_of(0, batch) / batch;
  if (is_near(sum, wanted)) {
    return require_same_backwards(
        board, ranks, [&](int rank) { return handed_in_by(share_of(rank, ranks, batch)); });
  }
  board.conclude(Verdict::wrong_values,
                 fmt::format("what the ranks hand in adds up to {:.9g}; one device has {:.9g}{}",
                             sum, wanted, known_as(sum, sum_of_means, wanted, ranks, batch)));
}

template <class Check>
void in_all_worlds(Board& board, Check check) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int batch : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 64, 255, 256, 257}) {
      board.begin('B', {.ranks = ranks, .elements = batch, .op = ReduceOp::mean});
      check(board, ranks, batch);
    }
  }
}

}  // namespace

void check_chapter(Board& board) {
  in_all_worlds(board, check_shares);
  in_all_worlds(board, check_contributions);
  board.pass({.ranks = 3, .elements = 256, .op = ReduceOp::mean}, {},
             "256 images on three replicas are 86 + 85 + 85, and their step is that of one device");
}

}  // namespace ringlet::learn
