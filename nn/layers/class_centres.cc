#include "nn/layers/class_centres.h"

#include <utility>

namespace ringlet::nn {

ClassCentres::ClassCentres(std::unique_ptr<Layer> model, std::int64_t classes, std::int64_t size)
    : model_(std::move(model)), centres_({classes, size}, Initializer::normal(0.01F)) {
  centres_.placement = Placement::rows;
  centres_.of_loss = true;
  centres_.adds_shards = true;
}

Variable ClassCentres::forward(Tape& tape, const Variable& x) { return model_->forward(tape, x); }

void ClassCentres::register_in(Registry& registry, const std::string& prefix) {
  model_->register_in(registry, prefix);
  registry.add(centres_, prefix + "centres.weight");
}

}  // namespace ringlet::nn
