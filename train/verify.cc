#include "train/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/files/file_error.h"
#include "data/pair_images.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/loop/predictor.h"
#include "train/setup/pass_size.h"
#include "train/trainer.h"

namespace ringlet::train {

namespace {

/// What is known of a pair, in two floats each: a double as the nearest one and the rest.
enum Slot : std::size_t { kDistance = 0, kLength = 2, kZeros = 4, kSlots = 5 };

void put(double value, float* slot) {
  slot[0] = static_cast<float>(value);
  slot[1] = static_cast<float>(value - static_cast<double>(slot[0]));
}
double taken(const float* slot) {
  return static_cast<double>(slot[0]) + static_cast<double>(slot[1]);
}

/// Of a pass, at most: so many pairs that a predictor's pass is theirs.
struct PassOfPairs {
  std::int64_t pairs = 0;
  std::int64_t batch = 0;  ///< for PredictorOptions, of which pass_size() makes the pairs' samples
};

PassOfPairs pass_of_pairs(const ModelInfo& info, std::int64_t usual, std::int64_t each) {
  const std::int64_t pixels = std::int64_t{info.channels} * info.height * info.width;
  const std::int64_t pairs = std::max<std::int64_t>(1, pass_size(usual, pixels) / each);
  std::int64_t batch = pairs * each;
  while (pass_size(batch, pixels) < pairs * each) ++batch;
  return {pairs, batch};
}

/// One rank's part of a set.
class RankOfPairs {
 public:
  RankOfPairs(std::shared_ptr<const data::Pairs> pairs, const ModelInfo& info, Flip flip,
              std::int64_t pairs_of_pass, int rank, int ranks)
      : pairs_(std::move(pairs)),
        mirrored_(flip == Flip::sum),
        slots_(static_cast<std::size_t>(pairs_->size()) * kSlots) {
    for (std::int64_t i = 0; i < pairs_->size(); ++i) {
      if (i / pairs_of_pass % ranks == rank) mine_.push_back(i);
    }
    if (mine_.empty()) return;
    images_ = std::make_shared<const data::PairImages>(
        pairs_, mine_,
        data::PairImagesOptions{info.channels, info.height, info.width, info.exif, mirrored_});
  }

  const std::vector<std::int64_t>& mine() const { return mine_; }
  std::vector<float>& slots() { return slots_; }

  /// Embeds this rank's pairs. False where `stop` ended that; throws FileError for what is not
  /// finite.
  bool embed(Predictor& predictor, const std::filesystem::path& file, const StopRequest& stop,
             const std::function<void(std::int64_t)>& done) {
    if (images_ == nullptr) return true;
    const std::int64_t each = data::samples_of_pair(mirrored_);
    std::size_t next = 0;
    bool whole = true;
    try {
      predictor.each_pass(images_, [&](std::span<const float> outputs) {
        if (stop && stop()) throw Stopped();
        const std::int64_t left = (std::ssize(mine_) - static_cast<std::int64_t>(next)) * each;
        const std::int64_t samples = std::min(predictor.batch(), left);
        const std::int64_t width = std::ssize(outputs) / samples;
        for (std::int64_t s = 0; s < samples; s += each) {
          take(outputs.subspan(static_cast<std::size_t>(s * width),
                               static_cast<std::size_t>(each * width)),
               width, next, file);
          ++next;
        }
        done(static_cast<std::int64_t>(next));
      });
    } catch (const Stopped&) {
      whole = false;
    }
    return whole;
  }

 private:
  /// The outputs of one pair.
  void take(std::span<const float> outputs, std::int64_t width, std::size_t index,
            const std::filesystem::path& file) {
    const auto broken = std::ranges::find_if(outputs, [](float v) { return !std::isfinite(v); });
    if (broken != outputs.end()) {
      const std::int64_t each = data::samples_of_pair(mirrored_);
      const std::int64_t sample =
          static_cast<std::int64_t>(index) * each + (broken - outputs.begin()) / width;
      throw FileError(fmt::format("{} gives {} a number that is not finite; its weights are broken",
                                  file.string(), images_->picture_name(sample)));
    }
    const std::vector<double> rows(outputs.begin(), outputs.end());
    float* const slots = slots_.data() + static_cast<std::size_t>(mine_[index]) * kSlots;
    Lengths passes, summed;
    (void)pair_distances(rows, width, passes);
    const std::vector<double> embeddings = mirrored_ ? of_both(rows, width) : rows;
    put(pair_distances(embeddings, width, summed)[0], slots + kDistance);
    put(passes.sum, slots + kLength);
    slots[kZeros] = static_cast<float>(summed.zeros);
  }

  static std::vector<double> of_both(const std::vector<double>& rows, std::int64_t width) {
    const auto columns = static_cast<std::size_t>(width);
    std::vector<double> sums(2 * columns);
    for (std::size_t c = 0; c < columns; ++c) {
      sums[c] = rows[c] + rows[columns + c];
      sums[columns + c] = rows[2 * columns + c] + rows[3 * columns + c];
    }
    return sums;
  }

  std::shared_ptr<const data::Pairs> pairs_;
  bool mirrored_;
  std::vector<std::int64_t> mine_;
  std::shared_ptr<const data::PairImages> images_;
  std::vector<float> slots_;
};

Verified verified(const data::Pairs& pairs, Flip flip, const std::vector<float>& slots) {
  Verified result{.name = pairs.name(), .figures = {}};
  double lengths = 0;
  for (std::int64_t i = 0; i < pairs.size(); ++i) {
    const float* const slot = slots.data() + static_cast<std::size_t>(i) * kSlots;
    result.distances.push_back(taken(slot + kDistance));
    lengths += taken(slot + kLength);
    result.zero_embeddings += static_cast<std::int64_t>(slot[kZeros]);
  }
  result.mean_length =
      lengths / static_cast<double>(pairs.size() * data::samples_of_pair(flip == Flip::sum));
  result.figures = figures_of(result.distances, pairs.same());
  return result;
}

/// The sum over the ranks, on each.
void sum_over_ranks(Device& device, comm::Communicator& communicator, std::vector<float>& numbers) {
  const Tensor sums(device, {std::ssize(numbers)});
  const std::unique_ptr<Event> ready = device.make_event();
  copy_from_host(device.compute(), numbers.data(), sums);
  device.compute().record(*ready);
  device.communication().wait(*ready);
  communicator.all_reduce(device.communication(), sums, "verification");
  device.communication().synchronize();
  communicator.require_alive();
  copy_to_host(device.compute(), sums, numbers.data());
}

comm::Plan plan_of_sets(const std::vector<std::shared_ptr<const data::Pairs>>& sets) {
  comm::Plan plan;
  for (const auto& set : sets) {
    plan.emplace_back(set->file(), fmt::format("{} pairs, hash {:016x}", set->size(), set->hash()));
  }
  return plan;
}

}  // namespace

std::vector<Verified> verify(comm::Group& group, const Execution& execution,
                             const std::filesystem::path& file, const ModelInfo& info,
                             const std::vector<std::shared_ptr<const data::Pairs>>& sets,
                             const VerifyOptions& options) {
  const comm::Plan plan = plan_of_sets(sets);
  std::vector<Verified> results;
  bool stopped = false;
  const auto body = [&](Device& device, comm::Communicator& communicator) {
    communicator.require_equal(device.communication(), plan);
    const int rank = communicator.rank(), ranks = communicator.size();
    const std::int64_t usual = device.id().kind == DeviceKind::cuda ? 2000 : 250;
    const std::int64_t each = data::samples_of_pair(options.flip == Flip::sum);
    const PassOfPairs pass = pass_of_pairs(info, usual, each);
    Predictor predictor(device, file, info,
                        {.batch = pass.batch,
                         .layout = execution.layout,
                         .precision = options.precision,
                         .emulate_precision = execution.emulate_precision});
    require(predictor.batch() == pass.pairs * each, "verify", "a pass is of whole pairs");
    const bool tells = communicator.world().local_rank == 0;
    for (const auto& set : sets) {
      RankOfPairs mine(set, info, options.flip, pass.pairs, rank, ranks);
      const bool whole =
          mine.embed(predictor, file, options.stop_requested, [&](std::int64_t done) {
            communicator.note_work();
            if (rank == 0 && options.progress) options.progress(done, std::ssize(mine.mine()));
          });
      mine.slots().push_back(whole ? 0.0F : 1.0F);  // behind the pairs: who was stopped
      sum_over_ranks(device, communicator, mine.slots());
      const bool cut = mine.slots().back() > 0;
      if (tells) stopped = stopped || cut;
      if (cut) return;
      if (tells) results.push_back(verified(*set, options.flip, mine.slots()));
    }
  };
  run_replicas(group, execution, body);
  if (stopped) throw Stopped();
  return results;
}

}  // namespace ringlet::train
