// A model's last layer: what --freeze all-but-head leaves to learn, --head-lr gives a rate of its
// own, and --replace-head lets start anew.
#pragma once

#include <string>

#include "nn/parameter.h"

namespace ringlet::nn {

/// The last layer that has a weight matrix, and all behind it: what normalises its outputs, as in
/// iresnet, or bends them. Of a model without a matrix, the last layer that is learnt. What a loss
/// learns is in no layer of the model.
class LastLayer {
 public:
  explicit LastLayer(const Registry& registry);

  /// Its rows are the layer's outputs. Null: nothing is learnt.
  const Parameter* weight() const { return weight_; }
  const std::string& name() const { return name_; }  ///< "fc"

  bool has(const Parameter& parameter) const {
    return weight_ != nullptr && !parameter.of_loss && parameter.id >= first_;
  }
  bool has(const StateBuffer& buffer) const { return has(buffer.name, buffer.behind); }
  bool has(const StateCounter& counter) const { return has(counter.name, counter.behind); }

 private:
  bool has(const std::string& name, int behind) const;

  const Parameter* weight_ = nullptr;
  std::string name_;
  int first_ = 0;  // id of the layer's first parameter
};

}  // namespace ringlet::nn
