#include "train/recipe/best_spec.h"

namespace ringlet::train {

std::vector<Option<BestSpec>> best_options() {
  return {choice_option(
              "best_by", &BestSpec::best_by,
              {{"auto", BestBy::automatic}, {"accuracy", BestBy::accuracy}, {"loss", BestBy::loss}},
              {.help = "which test is the best: OUT/model.best.safetensors is the model "
                       "of its epoch; auto takes the accuracy where there is one"}),
          option("patience", &BestSpec::patience,
                 {.help = "end the run after N epochs without a better test; 0: never",
                  .range = from(0),
                  .may_become = may_always,
                  .value_name = "N"})};
}

}  // namespace ringlet::train
