// MemoryDataset: a data set whose pixels all lie in memory.
#pragma once

#include "data/dataset.h"

namespace ringlet::data {

class MemoryDataset final : public Dataset {
 public:
  /// `images`: [labels.size(), channels, height, width] row-major; `labels`: 0 .. classes - 1.
  /// Throws DataError when sizes disagree, an extent is not positive or a label has no class.
  MemoryDataset(DatasetInfo info, std::vector<std::uint8_t> images,
                std::vector<std::int32_t> labels, std::vector<Field> fields = {});

  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  std::span<const std::uint8_t> images() const override { return images_; }

 private:
  std::vector<std::uint8_t> images_;
};

}  // namespace ringlet::data
