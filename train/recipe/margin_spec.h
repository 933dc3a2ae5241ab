// The losses of classification: a softmax over logits, or over cosines with a margin between
// classes (kernels/margin_softmax.h), by which a model learns embeddings. The losses are
// train/task/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet {
struct MarginSpec;  // kernels/margin_softmax.h
}

namespace ringlet::train {

inline constexpr const char* kSoftmax = "softmax";

struct LossSpec {
  std::string loss = kSoftmax;
  std::string margin = "auto";  ///< "0.5", or "1,0.5,0"; auto: the loss's usual one
  double scale = 64;
  double filter = 0;  ///< cosines of other classes above it count as 0; 0: none do
  std::string margin_gradient = "exact";
  std::string margin_guard = "auto";
  double margin_warmup = 0;  ///< epochs in which the margin grows from none
  int embedding_size = 512;  ///< outputs of the model
  double sample_rate = 1;    ///< of the classes that a step works on
  int class_shards = 0;      ///< into which classes are cut for that; 0: by their number

  bool operator==(const LossSpec&) const = default;
  /// Whether the model gives embeddings.
  bool has_margin() const { return loss != kSoftmax; }
};

/// "arcface", "cosface", "normface", "combined".
std::vector<std::string> margin_losses();

std::vector<Option<LossSpec>> loss_options();

/// Logical shards of `classes`: what --class-shards says, else 8, or 64 of 65,536 classes and more.
int class_shards_of(const LossSpec& spec, std::int64_t classes);

/// What the options say. Throws ContractError naming the flag for a margin that there is not.
MarginSpec margin_of(const LossSpec& spec);

/// What is not as usual, behind a comma each.
std::string in_words(const LossSpec& spec);

}  // namespace ringlet::train
