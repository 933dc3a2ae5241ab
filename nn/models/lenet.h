// LeNet as the textbook "Dive into Deep Learning", section 13.5, builds it:
//
//   conv 1 -> 20, 3x3   ReLU   average pool 2     [N, 1, 28, 28] -> [N, 20, 13, 13]
//   conv 20 -> 50, 5x5  ReLU   average pool 2     -> [N, 50, 4, 4]
//   linear 800 -> 128   ReLU   linear 128 -> 10   -> [N, 10]
//
// 129,068 parameters. `lenet-d2l` starts as the book does, weights N(0, 0.01^2) and zero biases;
// `lenet` is the same network with an initialisation that learns from the first step on.
#pragma once

#include <memory>

#include "nn/models/model.h"

namespace ringlet::nn {

enum class LeNetStart : std::uint8_t { practitioner, textbook };

std::unique_ptr<Layer> make_lenet(const ModelInput& input, LeNetStart start);

}  // namespace ringlet::nn
