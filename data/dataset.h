// A labelled set of images in memory: what every loader gathers from.
//
// A Dataset never changes after construction, so any number of replicas and loader threads share
// one through std::shared_ptr<const Dataset>.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

/// Mean and standard deviation of pixels / 255, over all pixels of all channels.
struct PixelStatistics {
  double mean = 0;
  double deviation = 1;
};

/// The description of a data set, apart from its bytes.
struct DatasetInfo {
  std::string name;  ///< "fashion-mnist/train": for messages and for the plan
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::string> class_names;  ///< one a class, in the order of the labels
};

class Dataset {
 public:
  /// `images`: [labels.size(), channels, height, width] row-major; `labels`: 0 .. classes - 1.
  /// Throws DataError when sizes disagree, an extent is not positive or a label has no class.
  Dataset(DatasetInfo info, std::vector<std::uint8_t> images, std::vector<std::int32_t> labels);

  const std::string& name() const { return info_.name; }
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }  ///< samples
  std::int64_t channels() const { return info_.channels; }
  std::int64_t height() const { return info_.height; }
  std::int64_t width() const { return info_.width; }
  std::int64_t pixels() const { return channels() * height() * width(); }  ///< of one sample
  std::int64_t classes() const { return static_cast<std::int64_t>(info_.class_names.size()); }
  const std::vector<std::string>& class_names() const { return info_.class_names; }

  std::span<const std::uint8_t> images() const { return images_; }  ///< [N, C, H, W]
  std::span<const std::int32_t> labels() const { return labels_; }  ///< [N]
  const std::uint8_t* image(std::int64_t index) const { return images_.data() + index * pixels(); }

  /// Statistics of this set's own pixels. Normalise test images with the *training* set's numbers.
  const PixelStatistics& statistics() const { return statistics_; }
  /// 64 bits over the sizes, the pixels, the labels and the class names: equal on two ranks when
  /// they read the same data. Not cryptographic.
  std::uint64_t hash() const { return hash_; }
  /// "fashion-mnist/train: 60000 images of 1 x 28 x 28, 10 classes, hash 0123456789abcdef"
  std::string description() const;

 private:
  void check() const;

  DatasetInfo info_;
  std::vector<std::uint8_t> images_;
  std::vector<std::int32_t> labels_;
  PixelStatistics statistics_;
  std::uint64_t hash_ = 0;
};

/// The two halves of a data set: equal image size and class names.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

}  // namespace ringlet::data
