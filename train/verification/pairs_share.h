// PairsShare: one rank's part of a set of pairs that all ranks measure together.
//
// The pairs are cut into passes of a fixed size, of which rank i runs each that is i mod the number
// of ranks. Each pair's distance and lengths have slots of their own in a vector, which is summed
// over the ranks at the end. So every pair counts once, a rank without pairs has only zeros to add,
// and the figures have the same bits for any number of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/pair_images.h"
#include "data/pairs.h"
#include "kernels/device.h"
#include "train/verification/verified.h"

namespace ringlet::train {

/// The embedding of a picture: what the model gives for it and for it mirrored, added up; or the
/// first alone.
enum class Flip : std::uint8_t { sum, none };

class PairsShare {
 public:
  /// `images.mirrored` is as `flip` says.
  PairsShare(std::shared_ptr<const data::Pairs> pairs, data::PairImagesOptions images, Flip flip,
             std::int64_t pairs_of_pass, int rank, int ranks);

  /// The pictures of this rank's pairs, in the order of its passes. Null: it has none.
  const std::shared_ptr<const data::PairImages>& images() const { return images_; }
  /// This rank's pairs.
  std::int64_t size() const { return static_cast<std::int64_t>(mine_.size()); }
  std::int64_t taken() const { return static_cast<std::int64_t>(next_); }

  /// What is summed over the ranks: zeros for other ranks' pairs.
  std::vector<float>& slots() { return slots_; }
  /// Forgets all outputs.
  void begin();
  /// The outputs of the next pairs of this rank, row by row. `model`: for messages. Throws
  /// FileError for a number that is not finite.
  void take(std::span<const float> outputs, std::int64_t width, const std::string& model);
  /// Of slots that were summed.
  Verified verified(const std::string& name) const;

 private:
  void take_pair(std::span<const float> outputs, std::int64_t width, const std::string& model);

  std::shared_ptr<const data::Pairs> pairs_;
  bool mirrored_;
  std::vector<std::int64_t> mine_;
  std::shared_ptr<const data::PairImages> images_;
  std::vector<float> slots_;
  std::size_t next_ = 0;  // of mine_
};

/// The sum over the ranks, on each. Collective.
void sum_over_ranks(Device& device, comm::Communicator& communicator, std::vector<float>& numbers);

}  // namespace ringlet::train
