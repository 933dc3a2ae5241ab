#include "nn/layers/residual_block.h"

#include "nn/ops/elementwise.h"

namespace ringlet::nn {

namespace {

const std::string kDownsample = "downsample";

Variable shortcut_of(Tape& tape, Sequential& downsample, const Variable& x) {
  const Tape::Scope scope(tape, kDownsample);
  return downsample.forward(tape, x);
}

}  // namespace

Variable ResidualBlock::forward(Tape& tape, const Variable& x) {
  const Variable y = body_.forward(tape, x);
  const Variable shortcut = shortcut_of(tape, downsample_, x);
  const Tape::Scope scope(tape, norm_name_);
  if (tape.context().fuse) return norm_.forward(tape, y, shortcut, last_);
  const Variable sum = add(norm_.forward(tape, y), shortcut);
  return last_ == Activation::relu ? relu(sum) : sum;
}

void ResidualBlock::register_in(Registry& registry, const std::string& prefix) {
  body_.register_in(registry, prefix);
  norm_.register_in(registry, prefix + norm_name_ + ".");
  downsample_.register_in(registry, prefix + kDownsample + ".");
}

}  // namespace ringlet::nn
