// Random images of any shape, resident in memory, to see how fast a model is at that shape without
// data. `--data random:CxHxW` has images of C channels, H rows and W columns.
//
//   pixels    bytes, uniform in 0 to 255
//   label     one of ten classes
//
// Sample `index` of a split is a pure function of (seed, split, index). Nothing can be learnt.
// statistics() are those of the distribution, the same for each channel, so a GPU's copy serves
// (train/batches/batch_source.h): steps wait for no loading.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace ringlet::data {

inline constexpr const char* kRandomImagesName = "random";  ///< as --data names it

struct RandomImagesOptions {
  std::int64_t train = 60000;  ///< training samples, at least 1
  std::int64_t test = 10000;   ///< test samples, at least 1
  std::uint64_t seed = 1;
  StopRequest stop_requested{};  ///< asked between samples; then Stopped is thrown
};

/// What is wrong with a shape, in words; empty: nothing.
std::string fault_of_shape(const std::string& shape);

/// Of `shape`, "CxHxW": three whole numbers from 1 to 65536 in decimal. Throws DataError for any
/// other text, where both splits do not fit into memory, and for a number of samples below 1.
Splits make_random_images(const std::string& shape, const RandomImagesOptions& options = {});

}  // namespace ringlet::data
