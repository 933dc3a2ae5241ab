#include "train/setup/replica_spec.h"

#include "nn/plan.h"
#include "train/recipe/models.h"
#include "train/recipe/precision_support.h"

namespace ringlet::train {

std::unique_ptr<nn::Layer> make_model(const ReplicaSpec& spec) {
  if (!spec.make_model) return make_model(spec.recipe.model, spec.input);
  return nn::require_model(spec.make_model(spec.input), "make_model");
}

void require_precision(const ReplicaSpec& spec, DeviceKind device, bool emulate) {
  const Precision precision = spec.recipe.precision;
  if (!is_narrow(precision)) return;
  const auto model = make_model(spec);
  require_precision(precision, device, spec.layout, nn::register_model(*model).parameters, emulate);
}

Layout choose_layout(LayoutChoice choice, DeviceKind device, std::int64_t samples_per_pass,
                     Precision precision) {
  if (choice == LayoutChoice::nchw) return Layout::nchw;
  if (choice == LayoutChoice::lanes) return Layout::lanes;
  if (choice == LayoutChoice::nhwc) return Layout::nhwc;
  if (device == DeviceKind::cuda) {
    return uses_tensor_cores(precision) ? Layout::nhwc : Layout::nchw;
  }
  const bool fills_lanes = samples_per_pass >= kLanes;
  return device == DeviceKind::cpu && fills_lanes ? Layout::lanes : Layout::nchw;
}

}  // namespace ringlet::train
