#include "nn/parameters.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/running_statistics.h"
#include "nn/row_major.h"

namespace ringlet::nn {

namespace {

std::int64_t buffer_elements(const Registry& registry) {
  std::int64_t elements = 0;
  for (const StateBuffer* buffer : registry.buffers) elements += buffer->shape.count();
  return std::max<std::int64_t>(elements, 1);
}

std::int64_t at_least_one(std::int64_t count) { return std::max<std::int64_t>(count, 1); }

}  // namespace

Parameters::Parameters(Device& device, const Registry& registry, const Plan& plan,
                       int gradient_arenas, Allocator* gradients_from)
    : registry_(registry),
      plan_(plan),
      values_(device, {plan.elements}),
      narrow_values_(is_narrow(plan.activations) ? Tensor(device, {plan.elements}, plan.activations)
                                                 : Tensor()),
      buffers_(device, {buffer_elements(registry)}),
      counters_(device, {at_least_one(static_cast<std::int64_t>(registry.counters.size()))},
                DType::i32),
      running_targets_(device, {at_least_one(plan.running_elements), 2}, DType::i32),
      device_(device) {
  Stream& stream = device.compute();
  Allocator& gradient_memory = gradients_from != nullptr ? *gradients_from : device;
  for (int i = 0; i < gradient_arenas; ++i) {
    gradients_.emplace_back(gradient_memory,
                            Shape{behind_gradients(i) + kStatistics + plan.running_elements});
    fill(stream, 0, gradients_.back());
  }
  const std::int64_t shards = registry.along.shards;
  if (plan.is_sharded() && shards > 1 && gradient_arenas > 0) {
    row_gradients_ = Tensor(device, {(shards - 1) * plan.rows_apart});
    fill(stream, 0, row_gradients_);
  }
  fill(stream, 0, values_);
  fill(stream, 0, buffers_);
  for (const PlannedParameter& planned : plan.parameters) {
    Parameter& parameter = *registry_.parameters.at(static_cast<std::size_t>(planned.id));
    parameter.value = part_of(values(), planned);
    parameter.narrow = is_narrow(plan.activations) ? part_of(narrow_values_, planned) : View();
    if (parameter.sampling && gradient_arenas > 0) lay_out_sampled(parameter);
  }
  if (gradient_arenas > 0) {
    use_gradient_arena(0);
    use_pass(0);
  }
  lay_out_buffers();
  lay_out_running_statistics();
}

View Parameters::part_of(const View& arena, const PlannedParameter& planned) const {
  const Parameter& parameter = *registry_.parameters.at(static_cast<std::size_t>(planned.id));
  const View part = arena.slice(planned.begin, planned.end);
  return {part.address(), planned.shape, part.dtype(), parameter.layout_beside(plan_.images)};
}

View Parameters::gradient_of(const View& arena, const PlannedParameter& planned) const {
  const Parameter& parameter = *registry_.parameters.at(static_cast<std::size_t>(planned.id));
  const View part = arena.slice(planned.begin, planned.gradient_end());
  return {part.address(), planned.gradient(), part.dtype(), parameter.layout_beside(plan_.images)};
}

void Parameters::lay_out_sampled(Parameter& parameter) {
  // Before the first step any rows will do, as long as there are such.
  RowSampler sampler(*parameter.sampling, parameter.shape[0], registry_.along);
  listed_.emplace_back(device_, Shape{parameter.room}, DType::i32);
  parameter.listed = listed_.back();
  if (parameter.room == 0) return;
  copy_from_host(device_.compute(), sampler.first_rows().data(), parameter.listed);
}

void Parameters::narrow_values(Stream& stream) const {
  if (is_narrow(plan_.activations)) cast(stream, values_, narrow_values_);
}

void Parameters::lay_out_buffers() {
  Stream& stream = device_.compute();
  std::int64_t begin = 0;
  for (StateBuffer* buffer : registry_.buffers) {
    const std::int64_t end = begin + buffer->shape.count();
    buffer->value = buffers().slice(begin, end).reshaped(buffer->shape);
    fill(stream, buffer->start, buffer->value);
    begin = end;
  }
  fill(stream, 0, counters_);
  for (std::size_t i = 0; i < registry_.counters.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    registry_.counters[i]->value = counters().slice(at, at + 1);
  }
}

void Parameters::lay_out_running_statistics() {
  std::vector<std::int32_t> targets;
  for (RunningStatistics* running : registry_.running) {
    const std::int64_t channels = running->mean.shape.count();
    const auto begin = static_cast<std::int32_t>(running->mean.value.f32() - buffers().f32());
    const auto counter = static_cast<std::int32_t>(running->batches.value.as<std::int32_t>() -
                                                   counters().as<std::int32_t>());
    running->values = buffers().slice(begin, begin + 2 * channels).reshaped({2, channels});
    const auto scalars =
        static_cast<std::int32_t>(targets.size()) / 2 + static_cast<std::int32_t>(2 * channels);
    for (std::int32_t i = 0; i < 2 * channels; ++i) {
      targets.insert(targets.end(), {begin + i, scalars});
    }
    for (const std::int32_t target :
         {-2 - counter, RunningTarget::kNothing, RunningTarget::kNothing}) {
      targets.insert(targets.end(), {target, scalars});
    }
  }
  targets.resize(static_cast<std::size_t>(running_targets_.shape().count()));
  copy_from_host(device_.compute(), targets.data(), running_targets_);
}

void Parameters::initialize(std::uint64_t seed) {
  std::vector<float> host;
  constexpr std::int64_t kPiece = 1 << 20;  // numbers: rows that are cut may be very many
  for (const Parameter* parameter : registry_.parameters) {
    const std::int64_t count = parameter->held().count();
    const bool in_pieces = parameter->placement == Placement::rows;
    for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
      end = in_pieces ? std::min(count, begin + kPiece) : count;
      host.resize(static_cast<std::size_t>(end - begin));
      nn::initialize(parameter->initializer, seed, parameter->name, host,
                     parameter->first_held() + begin);
      if (!in_pieces) {
        from_rows(device_.compute(), host.data(), parameter->value);
        continue;
      }
      copy_from_host(device_.compute(), host.data(),
                     parameter->value.reshaped({count}).slice(begin, end));
    }
  }
  for (const StateBuffer* buffer : registry_.buffers) {
    fill(device_.compute(), buffer->start, buffer->value);
  }
  fill(device_.compute(), 0, counters_);
}

View Parameters::sums(int arena) const {
  const std::int64_t begin = behind_gradients(arena);
  return gradients(arena).slice(begin, begin + kStatistics + plan_.running_elements);
}

View Parameters::running_updates(int arena) const {
  return sums(arena).slice(kStatistics, kStatistics + plan_.running_elements);
}

void Parameters::commit_running_statistics(Stream& stream, ConstView scale) {
  if (plan_.running_elements == 0) return;
  running_statistics_commit(stream, running_updates(), running_targets_, buffers_, counters_,
                            scale);
}

std::int64_t Parameters::behind_gradients(int arena) const {
  return arena == 0 ? plan_.with_gradient() : plan_.replicated_gradient();
}

View Parameters::gradients(int arena, std::int64_t begin, std::int64_t end) const {
  const std::int64_t left_out =
      begin < plan_.with_gradient() ? 0 : plan_.with_gradient() - behind_gradients(arena);
  return gradients(arena).slice(begin - left_out, end - left_out);
}

View Parameters::statistics(int arena) const {
  const std::int64_t begin = behind_gradients(arena);
  return gradients(arena).slice(begin, begin + kStatistics);
}

View Parameters::row_gradients(int shard) const {
  const std::int64_t count = plan_.rows_apart;
  if (shard == 0) return gradients().slice(plan_.replicated(), plan_.replicated() + count);
  return row_gradients_.view().slice((shard - 1) * count, shard * count);
}

void Parameters::use_pass(std::int64_t pass) {
  const AxisPosition& along = registry_.along;
  if (!plan_.is_sharded() || along.alone()) return;
  const int ranks = along.shards > 0 ? along.ranks : 1;
  for (const PlannedParameter& planned : plan_.parameters) {
    if (planned.placement != Placement::rows) continue;
    std::vector<View>& by_rank =
        registry_.parameters.at(static_cast<std::size_t>(planned.id))->gradients_by_rank;
    if (planned.is_written_once) {
      by_rank.assign(1, gradient_of(gradients(), planned));
      continue;
    }
    by_rank.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto shard = along.shards > 0 ? rank * along.parts_of_rank() + pass : 0;
      const std::int64_t begin = planned.begin - plan_.replicated();
      by_rank[static_cast<std::size_t>(rank)] =
          row_gradients(static_cast<int>(shard))
              .slice(begin, begin + planned.gradient().count())
              .reshaped(planned.gradient());
    }
  }
}

void Parameters::use_gradient_arena(int arena) {
  const View flat = gradients(arena);
  for (const PlannedParameter& planned : plan_.parameters) {
    const bool cut = planned.placement == Placement::rows;
    registry_.parameters.at(static_cast<std::size_t>(planned.id))->gradient =
        gradient_of(cut ? gradients() : flat, planned);
  }
  track_in(running_updates(arena));
}

void Parameters::track_in(const View& updates) {
  std::int64_t begin = 0;
  for (RunningStatistics* running : registry_.running) {
    const std::int64_t end = begin + running_update_size(running->mean.shape.count());
    running->update = updates.slice(begin, end);
    begin = end;
  }
}

}  // namespace ringlet::nn
