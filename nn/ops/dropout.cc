#include "nn/ops/dropout.h"

#include "base/philox.h"
#include "kernels/dropout.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

/// The sample's number says its epoch and position. It lies in device memory where the step may be
/// replayed, else it is passed by value. Either way the mask is the same.
DropoutSpec spec_of(Tape& tape, float probability, std::uint64_t operation) {
  const StepContext& context = tape.context();
  const PhiloxBlock words = philox(context.seed, 0, operation);
  DropoutSpec spec{probability, std::uint64_t{words[0]} << 32 | words[1]};
  if (context.position.absent()) {
    spec.first_sample = sample_number({context.epoch, context.first_sample});
    tape.depend_on_position();
  } else {
    spec.position = context.position;
  }
  return spec;
}

}  // namespace

Variable dropout(const Variable& x, float probability, std::uint64_t operation) {
  Tape& tape = x.tape();
  const DropoutSpec spec = spec_of(tape, probability, operation);
  const Variable y = tape.make(x.shape(), x.layout(), x.dtype());
  dropout_forward(tape.stream(), spec, x.value(), y.value());
  tape.record("dropout", {x}, y, spec, [=](Backward& backward) {
    const auto [dx, beta] = backward.target(x);
    dropout_backward(backward.stream(), spec, backward.gradient(y), beta, dx);
  });
  return y;
}

}  // namespace ringlet::nn
