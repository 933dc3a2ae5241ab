#include "nn/layers/residual.h"

#include "nn/ops/elementwise.h"

namespace ringlet::nn {

namespace {

const std::string kBody = "body";
const std::string kShortcut = "shortcut";

Variable run(Tape& tape, const std::string& name, Sequential& branch, const Variable& x) {
  const Tape::Scope scope(tape, name);
  return branch.forward(tape, x);
}

}  // namespace

Variable Residual::forward(Tape& tape, const Variable& x) {
  const Variable y = run(tape, kBody, body_, x);
  return add(y, run(tape, kShortcut, shortcut_, x));
}

void Residual::register_in(Registry& registry, const std::string& prefix) {
  body_.register_in(registry, prefix + kBody + ".");
  shortcut_.register_in(registry, prefix + kShortcut + ".");
}

}  // namespace ringlet::nn
