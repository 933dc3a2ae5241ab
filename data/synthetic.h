// Drawn garments: a stand-in for Fashion-MNIST that needs no file. Ten classes of silhouettes,
// grey, 28 x 28, with random size, position, slant, proportions, brightness, texture and noise.
//
// Sample `index` of a split is a pure function of (seed, split, index); its class is random too.
// A small convolutional network learns them to more than 99 %; the nearest neighbour among some
// thousand images, compared pixel by pixel, is of another class for more than one image in ten.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace ringlet::data {

inline constexpr const char* kSyntheticName = "synthetic";  ///< as --data names it

struct SyntheticOptions {
  std::int64_t train = 60000;  ///< training samples, at least 1
  std::int64_t test = 10000;   ///< test samples, at least 1
  std::uint64_t seed = 1;
  StopRequest stop_requested{};  ///< asked between samples; then Stopped is thrown
};

/// Throws DataError when a number of samples is not positive.
Splits make_synthetic(const SyntheticOptions& options = {});

}  // namespace ringlet::data
