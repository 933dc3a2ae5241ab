// RenumberedDataset: a data set whose targets have the numbers of another list of names, as that of
// the model. They are matched by their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringlet::data {

/// How a name is compared: one of digits alone without its leading zeros. Labels of a .rec are
/// called 0 to 9, or 00 to 11: by how many there are.
std::string comparable(const std::string& name);

/// The index in `known` of each of `names`; nothing where one is not among them. Where some are not
/// there as they are written, all are compared as comparable() has them.
std::optional<std::vector<std::int32_t>> indices_of(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& known);

/// "cat, dog, frog and 997 more": of names what a message has room for.
std::string some_of(const std::vector<std::string>& names);

class RenumberedDataset final : public Dataset {
 public:
  /// `indices`: of each name of `source` in `names`. Its hash() is not that of `source`.
  RenumberedDataset(std::shared_ptr<const Dataset> source, std::vector<std::string> names,
                    const std::vector<std::int32_t>& indices);

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    source_->read(index, out);
  }
  void read_varied(std::int64_t index, const Variation& variation,
                   std::span<std::uint8_t> out) const override {
    source_->read_varied(index, variation, out);
  }
  bool keeps_samples() const override { return source_->keeps_samples(); }
  void keep(std::int64_t index, std::vector<std::uint8_t>& kept) const override {
    source_->keep(index, kept);
  }
  void vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                 std::span<std::uint8_t> out) const override {
    source_->vary_kept(kept, variation, out);
  }
  std::span<const std::uint8_t> images() const override { return source_->images(); }

 protected:
  PixelContent survey(std::uint64_t /*seed*/) const override { return survey_of(*source_); }
  std::vector<PixelStatistics> measure() const override { return source_->statistics(); }

 private:
  std::shared_ptr<const Dataset> source_;
};

}  // namespace ringlet::data
