// A data set whose samples have to be read, as far as anybody can see: read() copies them from one
// that lies in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/data_error.h"
#include "data/dataset.h"

namespace ringlet::testing {

class ReadDataset final : public data::Dataset {
 public:
  /// Sample `broken` cannot be read.
  explicit ReadDataset(std::shared_ptr<const data::Dataset> source, std::int64_t broken = -1)
      : Dataset({source->name(), source->channels(), source->height(), source->width(),
                 source->target_names()},
                {source->targets().begin(), source->targets().end()}),
        source_(std::move(source)),
        broken_(broken) {}

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    ++reads;
    if (index == broken_) throw DataError("sample " + std::to_string(index) + " is broken");
    source_->read(index, out);
  }

  mutable std::atomic<std::int64_t> reads{0};

 private:
  std::shared_ptr<const data::Dataset> source_;
  std::int64_t broken_;
};

}  // namespace ringlet::testing
