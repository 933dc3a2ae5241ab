#include "train/recipe/optimizer_spec.h"

namespace ringlet::train {

std::vector<std::string> no_decay_names() { return {"none", "norm", "bias", "norm,bias"}; }

std::vector<Option<OptimizerSpec>> optimizer_options() {
  using Spec = OptimizerSpec;
  const OnlyWith adamw{.key = "optimizer", .values = {"adamw"}};
  return {
      option("optimizer", &Spec::optimizer,
             {.help = "with adamw the defaults of --lr and --weight-decay are PyTorch's, 0.001 and "
                      "0.01",
              .choices = optimizer_names,
              .other_names = true}),
      option("nesterov", &Spec::nesterov,
             {.help = "Nesterov's momentum",
              .form = Switch::both,
              .help_off = "plain momentum",
              .since_first_states = true,
              .only = {.key = "optimizer",
                       .values = {"sgd"},
                       .refusal = "is SGD's; leave it out with --optimizer adamw"}}),
      option("beta1", &Spec::beta1,
             {.help = "of AdamW's mean of gradients", .range = from(0).below(1), .only = adamw}),
      option(
          "beta2", &Spec::beta2,
          {.help = "of AdamW's mean of their squares", .range = from(0).below(1), .only = adamw}),
      option("eps", &Spec::eps,
             {.help = "AdamW adds it to the root of the latter", .range = above(0), .only = adamw}),
      option("weight_decay", &Spec::weight_decay,
             {.help = "SGD adds this times the parameter to its gradient; AdamW takes it, times "
                      "the rate, from the parameter",
              .range = from(0),
              .since_first_states = true}),
      option("no_decay", &Spec::no_decay,
             {.help = "parameters without weight decay: those of normalising layers, biases",
              .choices = no_decay_names}),
      option("freeze", &Spec::freeze,
             {.help = "layers or parameters that are not learnt; their batch norms keep their "
                      "running statistics, and normalise by them",
              .default_in_words = "none",
              .value_name = "all-but-head|LAYER,..."}),
      option("head_lr", &Spec::head_lr,
             {.help = "a rate for the last layer, and --lr for the others; the schedule multiplies "
                      "both",
              .range = from(0),
              .default_in_words = "--lr",
              .open_at_zero = true}),
      option("clip_norm", &Spec::clip_norm,
             {.help = "shorten the summed gradient to this L2 norm if it is longer; 0: never",
              .range = from(0)}),
  };
}

}  // namespace ringlet::train
