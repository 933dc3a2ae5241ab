#include "nn/ops/dropout.h"

#include "kernels/dropout.h"
#include "kernels/philox.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

std::uint64_t key_of(const StepContext& context, std::uint64_t operation) {
  const PhiloxBlock words =
      philox(context.seed, static_cast<std::uint64_t>(context.epoch), operation);
  return std::uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

Variable dropout(const Variable& x, float probability, std::uint64_t operation) {
  Tape& tape = x.tape();
  const DropoutSpec spec{probability, key_of(tape.context(), operation),
                         tape.context().first_sample};
  const Variable y = tape.make(x.shape(), x.layout());
  dropout_forward(tape.stream(), spec, x.value(), y.value());
  tape.record("dropout", {x}, y, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    dropout_backward(backward.stream(), spec, backward.gradient(y), beta, dx);
  });
  return y;
}

}  // namespace ringlet::nn
