// What an optimiser is made from. The numbers of each optimiser stand here beside each other; their
// rows say whose they are, so that nobody else has to refuse them.
#pragma once

#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

struct OptimizerSpec {
  std::string optimizer = "sgd";  ///< see optimizers()
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< of AdamW, see kernels/adamw.h
  std::string no_decay = "none";                  ///< see parse_no_decay()
  std::string freeze{};                           ///< what is not learnt, see task/freezing.h
  double head_lr = 0;                             ///< rate of the last layer; 0: the others'
  double clip_norm = 0;                           ///< largest norm of the gradient; 0: any

  bool operator==(const OptimizerSpec&) const = default;
};

std::vector<Option<OptimizerSpec>> optimizer_options();

/// Defined where the optimisers are listed, train/optimizers/optimizer.cc.
std::vector<std::string> optimizer_names();

/// "none", "norm", "bias", "norm,bias": see train/optimizers/no_decay.h.
std::vector<std::string> no_decay_names();

}  // namespace ringlet::train
