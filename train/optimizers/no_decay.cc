#include "train/optimizers/no_decay.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/decay_table.h"
#include "kernels/host_copy.h"

namespace ringlet::train {

namespace {

bool passes_over(const NoDecay& without, nn::ParameterKind kind) {
  return (kind == nn::ParameterKind::norm && without.norm) ||
         (kind == nn::ParameterKind::bias && without.bias);
}

}  // namespace

NoDecay parse_no_decay(const std::string& name) {
  const std::vector<std::string> names = no_decay_names();
  const auto found = std::find(names.begin(), names.end(), name) - names.begin();
  require(found < static_cast<std::ptrdiff_t>(names.size()), "--no-decay",
          "the choices are none, norm, bias and norm,bias");
  return {.norm = (found & 1) != 0, .bias = (found & 2) != 0};
}

Tensor decay_table(Device& device, const nn::Parameters& parameters, const NoDecay& without) {
  static_assert(nn::Plan::kArenaAlignment % kDecayBlock == 0, "no block has two parameters");
  const nn::Plan& plan = parameters.plan();
  std::vector<std::uint8_t> decays(static_cast<std::size_t>(decay_blocks(plan.elements)), 1);
  bool all = true;
  for (const nn::PlannedParameter& planned : plan.parameters) {
    const nn::Parameter* parameter =
        parameters.registry().parameters[static_cast<std::size_t>(planned.id)];
    if (!passes_over(without, parameter->kind)) continue;
    all = false;
    std::fill(decays.begin() + planned.begin / kDecayBlock,
              decays.begin() + decay_blocks(planned.end), std::uint8_t{0});
  }
  if (all) return {};
  Tensor table(device, {decay_blocks(plan.elements)}, DType::u8);
  copy_from_host(device.compute(), decays.data(), table);
  return table;
}

}  // namespace ringlet::train
