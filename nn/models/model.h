// What a model is made for.
#pragma once

#include <memory>

#include "nn/layer.h"

namespace ringlet::nn {

/// Images [N, channels, height, width], of which the model answers each with `outputs` numbers.
struct ModelInput {
  int channels = 1;
  int height = 28;
  int width = 28;
  int outputs = 10;
};

}  // namespace ringlet::nn
