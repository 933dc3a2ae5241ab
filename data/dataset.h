// Dataset: samples with their targets, the interface that loaders, trainers and reports see.
//
//   MemoryDataset   all pixels lie in memory (data/memory_dataset.h)
//   one's own       read() makes or fetches a sample when it is asked for (examples/own_dataset.cc)
//
// Names, sizes and targets are always in memory; pixels need not be. A set never changes after
// construction, so any number of replicas and loader threads share one through
// std::shared_ptr<const Dataset>.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "data/augment.h"
#include "data/field.h"
#include "data/per_channel.h"

namespace ringlet::data {

/// Mean and standard deviation of pixels / 255, over all pixels of one channel.
struct PixelStatistics {
  double mean = 0;
  double deviation = 1;
};

/// The description of a data set, apart from its samples.
struct DatasetInfo {
  std::string name;  ///< "fashion-mnist/train": for messages and for the plan
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// What each value of a target stands for, in their order. Empty: samples have no targets.
  std::vector<std::string> target_names;
  /// Pictures of anything, of which a model sees the middle (data/images/centre_crop.h).
  bool photographs = false;
  /// Asked between samples where many are read; Stopped is thrown then.
  StopRequest stop_requested{};
};

/// What stands for a set's pixels.
struct PixelContent {
  std::uint64_t hash = 0;
  std::vector<PixelStatistics> statistics;  ///< one a channel; empty: measure() finds them
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const std::string& name() const { return info_.name; }
  std::int64_t size() const { return size_; }  ///< samples
  std::int64_t channels() const { return info_.channels; }
  std::int64_t height() const { return info_.height; }
  std::int64_t width() const { return info_.width; }
  std::int64_t pixels() const { return channels() * height() * width(); }  ///< of one sample
  /// How many values a target may have.
  std::int64_t target_values() const { return std::ssize(info_.target_names); }
  const std::vector<std::string>& target_names() const { return info_.target_names; }
  bool photographs() const { return info_.photographs; }
  const StopRequest& stop_requested() const { return info_.stop_requested; }
  std::span<const std::int32_t> targets() const { return targets_; }  ///< [N], or empty

  /// Float numbers of the samples, beside the pixels or instead of them; all in memory.
  std::span<const Field> fields() const { return fields_; }

  /// Writes sample `index`, [C, H, W] row-major, to `out` of pixels() bytes. Always the same bytes
  /// for one index. Several threads call it at once. Throws DataError where it cannot.
  virtual void read(std::int64_t index, std::span<std::uint8_t> out) const = 0;
  /// Writes it as a training run varies it (data/augment.h). This one varies what read() gives; a
  /// set whose pictures are larger than what a model sees may cut from these.
  virtual void read_varied(std::int64_t index, const Variation& variation,
                           std::span<std::uint8_t> out) const;
  /// What a cache keeps of a sample, and read_varied() from that: here the sample. A set whose
  /// random-resized-crop cuts from larger pictures keeps those, for that alone.
  virtual bool keeps_samples() const { return true; }
  virtual void keep(std::int64_t index, std::vector<std::uint8_t>& kept) const;
  virtual void vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                         std::span<std::uint8_t> out) const;
  /// Throws DataError for samples that read() could not read, as far as a cheap look at each tells,
  /// before anything is learnt. This one takes all for good.
  virtual void look_at_samples() const {}
  /// All pixels, [N, C, H, W], of a set that has them in memory; else empty. Loaders then gather
  /// from here and never call read(); a GPU takes a copy of it, if that fits.
  virtual std::span<const std::uint8_t> images() const { return {}; }
  /// What read() writes, as a vector.
  std::vector<std::uint8_t> image(std::int64_t index) const;

  /// Statistics of this set's own pixels, one a channel. Normalise test images with the *training*
  /// set's numbers. The first call of this or of hash() reads all samples; of a set whose survey()
  /// gives no statistics, this alone.
  const std::vector<PixelStatistics>& statistics() const;
  /// The same for a loader's options.
  PerChannel mean() const { return each(&PixelStatistics::mean); }
  PerChannel deviation() const { return each(&PixelStatistics::deviation); }
  /// 64 bits over the sizes, the pixels, the targets and their names: equal on two ranks when
  /// they read the same data, in memory or not. Not cryptographic.
  std::uint64_t hash() const { return content().hash; }
  /// hash() as earlier versions computed it, which states and caches of theirs hold.
  std::uint64_t former_hash() const;
  /// Whether a run that noted `hash` had these data, as far as that can be told.
  bool is_known_as(std::uint64_t hash) const {
    return hash == this->hash() || hash == former_hash();
  }
  /// "60000 images of 1 x 28 x 28, 10 classes, hash 0123456789abcdef", and which values of targets
  /// no sample has: "(no sample of Trouser, Bag)".
  std::string contents() const;
  /// The same behind the name: "fashion-mnist/train: 60000 images of ...".
  std::string description() const { return name() + ": " + contents(); }

 protected:
  /// Throws DataError for a set without samples, or with neither pixels nor fields, for a target
  /// without a name, and for fields of other numbers of samples. Without pixels (no channels)
  /// there may be no targets either.
  Dataset(DatasetInfo info, std::vector<std::int32_t> targets, std::vector<Field> fields = {});

  /// Throws DataError where there is none of that number.
  void require_sample(std::int64_t index) const;

  /// Hash of the pixels, chained to `seed`, and their statistics. This one reads every sample once.
  /// A set that takes long to read may hash what stands for its pixels, such as the files' names
  /// and fingerprints (data/fingerprint.h), and give statistics that are known.
  virtual PixelContent survey(std::uint64_t seed) const;
  /// The hash alone, as earlier versions computed it; nothing where it has not changed.
  virtual std::optional<std::uint64_t> former_survey(std::uint64_t /*seed*/) const { return {}; }
  /// Those of another set of the same sizes, for one that stands for it.
  static const PixelContent& survey_of(const Dataset& set) { return set.surveyed(); }
  static std::optional<std::uint64_t> former_survey_of(const Dataset& set, std::uint64_t seed) {
    return set.former_survey(seed);
  }
  /// The statistics, where survey() has none. This one reads every sample.
  virtual std::vector<PixelStatistics> measure() const { return measure_every(1); }
  /// Those of every `step`-th sample.
  std::vector<PixelStatistics> measure_every(std::int64_t step) const;

 private:
  std::uint64_t seed() const;
  const PixelContent& surveyed() const;  ///< what survey() gave, to the first call
  const PixelContent& content() const;   ///< the same, with the hash of targets and names too
  std::uint64_t with_targets(std::uint64_t hash) const;
  PerChannel each(double PixelStatistics::*number) const;

  void check_fields() const;

  DatasetInfo info_;
  std::vector<std::int32_t> targets_;
  std::vector<Field> fields_;
  std::int64_t size_;
  mutable std::once_flag survey_done_, content_done_;
  mutable PixelContent survey_, content_;
  mutable std::once_flag measured_;
  mutable std::vector<PixelStatistics> statistics_;  // where content_ has none
};

/// The two halves of a data set: equal image size and names of targets.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  std::vector<std::string> notes{};  ///< a line each: what the user should know of them
};

}  // namespace ringlet::data
