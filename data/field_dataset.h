// FieldDataset: a data set of float numbers alone, all in memory, without pixels and targets.
//
//   FieldDataset("houses/train", {{"rooms", {3}, rooms}, {"price", {1}, prices}})
#pragma once

#include "data/dataset.h"

namespace ringlet::data {

class FieldDataset final : public Dataset {
 public:
  /// Throws DataError for no field, for two of one name, and for fields that are not of equally
  /// many samples.
  FieldDataset(std::string name, std::vector<Field> fields)
      : Dataset({.name = std::move(name), .channels = 0, .target_names = {}}, {},
                std::move(fields)) {}

  void read(std::int64_t, std::span<std::uint8_t>) const override {}

 protected:
  PixelContent survey(std::uint64_t seed) const override { return {seed, {}}; }
};

}  // namespace ringlet::data
