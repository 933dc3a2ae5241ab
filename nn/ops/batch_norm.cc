#include "nn/ops/batch_norm.h"

#include <algorithm>

#include "kernels/batch_norm.h"
#include "kernels/elementwise.h"
#include "kernels/running_statistics.h"
#include "nn/cross_replica.h"
#include "nn/tape.h"

namespace ringlet::nn {

namespace {

ConstView value_or_none(const Variable& x) { return x.absent() ? ConstView() : x.value(); }

std::int64_t pixels_of(const Shape& shape) { return shape.rank() == 4 ? shape[2] * shape[3] : 1; }

/// What forward leaves for backward; all of it trivially copyable.
struct Recorded {
  Variable x, weight, bias, residual, y;
  View statistics;  // of the batch, or the running ones
  View sums;        // for backward
  float epsilon;
  Activation activation;
  double count;         // behind the statistics
  bool constant;        // the statistics do not depend on x
  CrossReplica* world;  // may be null

  BatchNorm norm() const {
    return {epsilon,
            activation,
            count,
            x.value(),
            statistics,
            value_or_none(weight),
            value_or_none(bias)};
  }
};

/// Normalises with the statistics of this batch, or of the world's.
void normalize_by_batch(Tape& tape, const Recorded& r) {
  Stream& stream = tape.stream();
  const std::int64_t channels = r.x.shape()[1];
  // Kept in either case, so that the plan of a step is that of both.
  const View part = tape.keep({2 * channels + 1}, Layout::nchw);
  if (r.world == nullptr) {
    batch_norm_train_forward(stream, r.norm(), r.statistics, value_or_none(r.residual),
                             r.y.value());
    return;
  }
  const bool counts = r.world->counts();
  batch_norm_moments(stream, r.x.value(), part.slice(0, 2 * channels).reshaped({2, channels}));
  fill(stream, counts ? static_cast<float>(r.x.shape()[0]) : 0.0F,
       part.slice(2 * channels, 2 * channels + 1));
  r.world->merge_moments(stream, part, pixels_of(r.x.shape()), r.statistics);
  batch_norm_forward(stream, r.norm(), value_or_none(r.residual), r.y.value());
}

void track(Tape& tape, const Recorded& r, const RunningStatistics& running, float momentum) {
  if (running.update.absent() || (r.world != nullptr && !r.world->counts())) return;
  const BatchShare& share = tape.context().share;
  running_statistics_track(tape.stream(),
                           {.momentum = momentum,
                            .count = r.count,
                            .share = share.share,
                            .so_far = share.so_far,
                            .batches = share.batches},
                           r.statistics, running.update);
}

/// Whether the batch can say something of the running variance. On a device without memory the
/// numbers of samples are not those of the training.
bool has_variance(const Tape& tape, double count) {
  if (count > 1) return true;
  if (count == 0) return false;
  require(tape.device().id().kind == DeviceKind::meta, "batch_norm",
          "training needs more than one value a channel: one sample of 1 x 1 has no variance; use "
          "a larger batch, or fewer replicas or shards");
  return false;
}

/// Where dz goes, which is the residual's gradient, and what of it is left to do.
struct ThroughResidual {
  View dz;                   // absent where nobody needs it
  Backward::Target pending;  // dz is to be added here
};

ThroughResidual through_residual(Backward& backward, const Recorded& r, const View& dy) {
  const bool relu = r.activation == Activation::relu;
  if (r.residual.absent()) return {};
  if (!backward.wants(r.residual)) return {relu ? dy : View(), {}};
  const Backward::Target target = backward.target(r.residual);
  if (target.beta == 0) return {target.view, {}};
  return {relu ? dy : View(), target};
}

void add_to(Backward& backward, const Variable& parameter, const View& sum) {
  if (!backward.wants(parameter)) return;
  const auto [gradient, beta] = backward.target(parameter);
  ringlet::scale(backward.stream(), 1, sum, beta, gradient);
}

/// dx where the sums over the world stand between it and dz, or where there are none.
void backward_apart(Backward& backward, const Recorded& r, const BatchNorm& norm,
                    const ConstView& of_y, const View& dy, const View& dz) {
  Stream& stream = backward.stream();
  const std::int64_t channels = r.x.shape()[1];
  const View flat = r.sums.reshaped({2 * channels});
  batch_norm_backward_sums(stream, norm, of_y, dy, dz, r.sums);
  add_to(backward, r.bias, flat.slice(0, channels));
  add_to(backward, r.weight, flat.slice(channels, 2 * channels));
  if (r.world != nullptr && !r.constant) r.world->sum(stream, flat);
  if (!backward.wants(r.x)) return;
  const auto [dx, beta] = backward.target(r.x);
  BatchNorm rest = norm;
  if (!dz.absent()) rest.activation = Activation::none;
  const bool through = !r.constant && (r.world == nullptr || r.world->counts());
  batch_norm_backward_data(stream, rest, dz.absent() ? dy : dz,
                           through ? ConstView(r.sums) : ConstView(), beta, dx);
}

void backward_at_once(Backward& backward, const Recorded& r, const BatchNorm& norm,
                      const ConstView& of_y, const View& dy, const View& dz) {
  const std::int64_t channels = r.x.shape()[1];
  const View flat = r.sums.reshaped({2 * channels});
  const auto [dx, beta] = backward.target(r.x);
  batch_norm_backward(backward.stream(), norm, of_y, dy, dz, r.sums, beta, dx);
  add_to(backward, r.bias, flat.slice(0, channels));
  add_to(backward, r.weight, flat.slice(channels, 2 * channels));
}

void run_backward(Backward& backward, const Recorded& r) {
  const View dy = backward.gradient(r.y);
  const BatchNorm norm = r.norm();
  const bool by_y = r.activation == Activation::relu && !r.residual.absent();
  const ConstView of_y = by_y ? ConstView(r.y.value()) : ConstView();
  const auto [dz, pending] = through_residual(backward, r, dy);
  if (r.world == nullptr && !r.constant && backward.wants(r.x)) {
    backward_at_once(backward, r, norm, of_y, dy, dz);
  } else {
    backward_apart(backward, r, norm, of_y, dy, dz);
  }
  if (!pending.view.absent()) {
    ringlet::scale(backward.stream(), 1, dz.absent() ? dy : dz, pending.beta, pending.view);
  }
}

}  // namespace

Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    RunningStatistics& running, const BatchNormSpec& spec, const Variable& residual,
                    Activation activation) {
  Tape& tape = x.tape();
  const std::int64_t channels = running.mean.shape.count();
  require((x.shape().rank() == 2 || x.shape().rank() == 4) && x.shape()[1] == channels,
          "batch_norm", "the input has not as many channels as the layer");
  const bool constant = !tape.context().training || spec.frozen || running.is_frozen;
  Recorded r{.x = x,
             .weight = weight,
             .bias = bias,
             .residual = residual,
             .y = tape.make(x.shape(), x.layout(), x.dtype()),
             .statistics = running.values,
             .sums = {},
             .epsilon = spec.epsilon,
             .activation = activation,
             .count = 1,
             .constant = constant,
             .world = constant ? nullptr : tape.context().world};
  if (tape.context().training) r.sums = tape.keep({2, channels}, Layout::nchw);
  if (constant) {
    batch_norm_forward(tape.stream(), r.norm(), value_or_none(residual), r.y.value());
  } else {
    const std::int64_t samples = r.world == nullptr ? x.shape()[0] : r.world->samples();
    const auto count = static_cast<double>(samples * pixels_of(x.shape()));
    r.count = std::max(1.0, count);
    r.statistics = tape.keep({2, channels}, Layout::nchw);
    // What stands in for a batch says nothing, and may be of one value a channel.
    const bool tracks = tape.context().share.share > 0 && has_variance(tape, count);
    normalize_by_batch(tape, r);
    if (tracks) track(tape, r, running, spec.momentum);
  }
  tape.record("batch_norm", {x, weight, bias, residual}, r.y,
              RecordedBatchNorm{spec, activation, &running},
              [r](Backward& backward) { run_backward(backward, r); });
  return r.y;
}

}  // namespace ringlet::nn
