// Trial: a world of ranks in lockstep that reduce one case after the other with the same objects.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/schedule/races.h"
#include "learn/check/chapters.h"
#include "learn/check/child.h"
#include "learn/check/data.h"
#include "learn/check/lockstep.h"

namespace ringlet::learn {

/// A device for each rank, kept from world to world.
Device& device_of(int rank);

/// The first wrong number of these results, said in words; empty where all are right.
std::string wrong_number(const std::vector<View>& results, Fill with, const Case& at, bool by_parts,
                         const Lockstep* lockstep);
/// The first two ranks whose bytes differ, in words.
std::string difference_of_ranks(const std::vector<View>& results);

class Trial {
 public:
  Trial(const Chapter& chapter, const comm::MakeAllReduce& make, const comm::Network& network,
        const LockstepOptions& options, Board& board);
  /// Concludes where something is wrong: order in layer A, numbers in layer B.
  void run(Case at, Fill with);
  /// Of the last run.
  comm::Totals totals() const { return comm::totals_of(lockstep_.schedule()); }
  std::optional<comm::Race> race() const { return comm::find_race(lockstep_.schedule()); }

 private:
  void reduce(int rank, const Data& data, ReduceOp op);

  const Chapter& chapter_;
  comm::MakeAllReduce make_;
  int machines_;
  Board& board_;
  Lockstep lockstep_;
  std::vector<std::unique_ptr<comm::AllReduce>> strategies_;  // of each rank, once it has begun
};

}  // namespace ringlet::learn
