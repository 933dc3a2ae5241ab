// MemoryDataset: a data set whose pixels all lie in memory.
#pragma once

#include "data/dataset.h"

namespace ringlet::data {

class MemoryDataset final : public Dataset {
 public:
  /// `images`: [targets.size(), channels, height, width] row-major.
  /// Throws DataError when sizes disagree, an extent is not positive or a target has no name.
  MemoryDataset(DatasetInfo info, std::vector<std::uint8_t> images,
                std::vector<std::int32_t> targets, std::vector<Field> fields = {});

  void read(std::int64_t index, std::span<std::uint8_t> out) const override;
  std::span<const std::uint8_t> images() const override { return images_; }

 private:
  std::vector<std::uint8_t> images_;
};

}  // namespace ringlet::data
