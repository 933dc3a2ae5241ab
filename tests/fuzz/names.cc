// The names that flags of a recipe may have. Who reads a state takes any, so the models and
// optimisers themselves are not linked.
#include <string>
#include <vector>

#include "train/recipe/models.h"
#include "train/recipe/optimizer_spec.h"

namespace ringlet::train {

std::vector<std::string> model_names() { return {}; }
std::vector<std::string> optimizer_names() { return {}; }

}  // namespace ringlet::train
