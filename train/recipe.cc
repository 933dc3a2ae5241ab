#include "nn/models/model.h"
#include "train/options.h"

namespace ringlet::train {

Recipe default_recipe(const std::string& model) {
  (void)nn::make_model(model, {});  // throws for a name that is not known
  Recipe recipe;
  recipe.model = model;
  if (model == "lenet-d2l") {  // "Dive into Deep Learning", section 13.5, to the letter
    recipe.batch_size = 256;
    recipe.epochs = 10;
    recipe.lr = 0.2;
    recipe.normalize = false;
    return recipe;
  }
  recipe.batch_size = 128;
  recipe.epochs = 6;
  recipe.lr = 0.1;
  recipe.momentum = 0.9;
  recipe.nesterov = true;
  recipe.weight_decay = 5e-4;
  recipe.schedule = ScheduleKind::one_cycle;
  return recipe;
}

}  // namespace ringlet::train
