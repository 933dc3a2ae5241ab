// The only place that turns the value of --data into a data set.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace ringlet::data {

struct OpenOptions {
  std::string directory{};  ///< --data-dir: where fashion-mnist lies; empty: look for it
  std::int64_t synthetic_train = 60000;  ///< drawn training samples
  std::int64_t synthetic_test = 10000;
  std::uint64_t synthetic_seed = 1;
};

/// `name` is "fashion-mnist", "synthetic" or a directory that holds IDX files.
/// Throws DataError; for a word that is none of these it names the three choices.
Splits open_dataset(const std::string& name, const OpenOptions& options = {});

}  // namespace ringlet::data
