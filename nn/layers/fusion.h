// Fusion: neighbouring layers that one operation computes faster run as one, so that the values
// between them are never written to memory. The mathematics are the same.
//
// fusion.cc has a table of patterns. A new one is a function, whose arguments are the layers that
// it takes, and its name in the table.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "nn/layer.h"

namespace ringlet::nn {

/// A layer and its name in the layer that holds it.
struct Child {
  std::string name;
  std::unique_ptr<Layer> layer;
};

/// What a pattern made of x, and of how many layers; 0: no pattern begins here.
struct Fused {
  Variable y;
  std::size_t layers = 0;
};

/// Runs the longest pattern that `layers` begin with and that takes x on its device.
Fused fuse(Tape& tape, const Variable& x, std::span<const Child> layers);

}  // namespace ringlet::nn
