#include "data/memory_dataset.h"

#include <algorithm>

#include "base/data_error.h"

namespace ringlet::data {

MemoryDataset::MemoryDataset(DatasetInfo info, std::vector<std::uint8_t> images,
                             std::vector<std::int32_t> targets, std::vector<Field> fields)
    : Dataset(std::move(info), std::move(targets), std::move(fields)), images_(std::move(images)) {
  if (static_cast<std::int64_t>(images_.size()) == size() * pixels()) return;
  throw DataError(name() + ": there are " + std::to_string(images_.size()) +
                  " bytes of pixels for " + std::to_string(size()) + " images of " +
                  std::to_string(pixels()));
}

void MemoryDataset::read(std::int64_t index, std::span<std::uint8_t> out) const {
  require_sample(index);
  std::copy_n(images_.begin() + index * pixels(), out.size(), out.begin());
}

}  // namespace ringlet::data
