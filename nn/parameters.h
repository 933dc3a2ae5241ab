// Parameters: a model's values, gradients and buffers as flat arenas on one device.
//
// There is one arena of values, and one or more of gradients: exact mode keeps a gradient for each
// level of its tree, a model that only predicts keeps none. Those behind arena 0 have no room for
// parameters whose rows are cut. Parameters lie in the order of the
// plan. The gaps between them always hold zeros. Where images lie in nhwc, filters do in all arenas
// (Parameter::layout_beside). Files have them row-major (row_major.h).
//
// Behind the last parameter each gradient arena has a few statistics (loss, samples, wishes to
// stop), and behind these what the step says of running statistics. So they travel with the last
// bucket at no extra cost.
//
// Parameters whose rows are cut over ranks (placement.h) lie behind those that are alike on all,
// with this rank's rows alone. In exact mode there is a gradient of these rows for each logical
// shard of a step's samples, whichever rank has them: that of shard 0 lies in arena 0, where all of
// them are added in the end. Where the operation adds them (Parameter::adds_shards), there is the
// sum alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/memory.h"
#include "nn/parameter.h"
#include "nn/plan.h"

namespace ringlet::nn {

class Parameters {
 public:
  /// Elements of a gradient arena behind the parameters, for sums that travel with the gradients.
  static constexpr std::int64_t kStatistics = 16;

  /// Allocates on `device` and sets the views of the registry's parameters and buffers. The first
  /// gradient arena is current; without any, the model can only be evaluated. `gradients_from`:
  /// allocates the gradient arenas; null: `device` does.
  Parameters(Device& device, const Registry& registry, const Plan& plan, int gradient_arenas = 1,
             Allocator* gradients_from = nullptr);

  /// Rounds all values to the activations' type, where that is narrow: one launch. To be called
  /// before a pass that follows a change of the values.
  void narrow_values(Stream& stream) const;

  /// Fills values and buffers as their initialisers say; a pure function of `seed`.
  void initialize(std::uint64_t seed);

  /// A parameter's range of an arena of plan.elements (of optimiser state, say), in the
  /// parameter's shape and layout.
  View part_of(const View& arena, const PlannedParameter& planned) const;

  const Plan& plan() const { return plan_; }
  const Registry& registry() const { return registry_; }
  /// All values, f32 [plan.elements].
  View values() const { return values_; }
  /// A gradient arena, f32 [plan.with_gradient() + kStatistics + plan.running_elements]; of those
  /// behind arena 0, without the rows that are cut.
  View gradients(int arena = 0) const { return gradients_.at(static_cast<std::size_t>(arena)); }
  /// Elements [begin, end) of arena 0, none of rows that are cut, and the same ones of another.
  View gradients(int arena, std::int64_t begin, std::int64_t end) const;
  /// The statistics behind the gradients, f32 [kStatistics].
  View statistics(int arena = 0) const;
  /// Behind those the updates of running statistics, f32 [plan.running_elements].
  View running_updates(int arena = 0) const;
  /// Both, f32 [kStatistics + plan.running_elements].
  View sums(int arena = 0) const;
  /// Takes the updates of arena 0, summed over the world, into the running statistics.
  /// `scale`: 0 skips the step, see running_statistics_commit(); may be absent.
  void commit_running_statistics(Stream& stream, ConstView scale = {});
  /// All buffers, f32 [their elements], at least one element.
  View buffers() const { return buffers_; }
  /// All counters, i32 [their number], at least one element.
  View counters() const { return counters_; }
  /// Of the rows that are cut, in exact mode: the gradient of a logical shard, f32
  /// [plan.rows_apart]. Shard 0's, and outside exact mode, is arena 0's.
  View row_gradients(int shard = 0) const;
  /// Lets gradients of rows go where those of each rank's pass `pass` belong.
  void use_pass(std::int64_t pass);
  /// Lets Parameter::gradient and RunningStatistics::update point into `arena` from now on.
  void use_gradient_arena(int arena);
  /// Lets RunningStatistics::update point into `updates` (f32 [plan.running_elements]) until the
  /// next use_gradient_arena(): for a forward whose gradients are not the next to be computed.
  void track_in(const View& updates);
  int gradient_arenas() const { return static_cast<int>(gradients_.size()); }

 private:
  /// Where what stands behind the gradients begins.
  std::int64_t behind_gradients(int arena) const;
  /// A parameter's range of an arena of gradients.
  View gradient_of(const View& arena, const PlannedParameter& planned) const;
  void lay_out_sampled(Parameter& parameter);
  void lay_out_buffers();
  void lay_out_running_statistics();

  Registry registry_;
  Plan plan_;
  Tensor values_;
  Tensor narrow_values_;  // of the activations' type, [plan.elements]; where that is narrow
  std::vector<Tensor> gradients_;
  Tensor row_gradients_;        // those of shards 1, 2, ...
  std::vector<Tensor> listed_;  // Parameter::listed
  Tensor buffers_;
  Tensor counters_;
  Tensor running_targets_;  // i32 [plan.running_elements, 2] (RunningTarget), at least one row
  Device& device_;
};

}  // namespace ringlet::nn
