#include "app/cli/fit_pictures.h"

#include "data/open_dataset.h"
#include "train/recipe/options.h"

namespace ringlet::app {

RawFlags fit_to_pictures(RawFlags flags) {
  const std::string data = given_or(flags, "data", train::Recipe().data);
  const bool of_pairs = !given_or<std::string>(flags, "verify", "").empty();
  if (of_pairs || !data::is_split(data)) return flags;
  flags.recipe.try_emplace("split", data::kUsualSplit);
  return flags;
}

}  // namespace ringlet::app
