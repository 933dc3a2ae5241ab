#include "train/loop/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/unsigned_nan.h"
#include "kernels/classify.h"
#include "kernels/host_copy.h"
#include "train/batches/label_batches.h"
#include "train/reports/failure.h"

namespace ringlet::train {

namespace {

std::int64_t nonfinite_in(Device& device, ConstView view) {
  const Tensor count(device, {1}, DType::i32);
  count_nonfinite(device.compute(), view, count);
  std::int32_t found = 0;
  copy_to_host(device.compute(), count, &found);
  return found;
}

std::string rank_in_words(const RunSetup& setup, int rank) {
  if (setup.stages) return name_of_rank(*setup.stages, rank, setup.replicas);
  return fmt::format("replica {}", rank);
}

const char* kept_in_words(const RunSetup& setup) {
  return setup.steps_in_flight == 0 ? "the parameters were left as they were before this step"
                                    : "no state was saved since";
}

/// "50 numbers"; of a parameter whose rows are cut, those that this rank has: "25 numbers of
/// classes 5 to 9".
std::string numbers_of(const nn::Parameter& parameter) {
  std::string numbers = fmt::format("{} numbers", parameter.held().count());
  const nn::Rows& rows = parameter.rows;
  const bool cut = parameter.placement == nn::Placement::rows && rows.size() < parameter.shape[0];
  if (!cut) return numbers;
  return fmt::format("{} of {} {} to {}", numbers, parameter.of_loss ? "classes" : "rows",
                     rows.begin, rows.end - 1);
}

/// What lets a run go better, as the end of a message.
std::string remedies(const RunSetup& setup, std::int64_t step) {
  const Recipe& recipe = setup.options.recipe;
  std::string text = fmt::format("Try a smaller --lr (now {:g})", setup.schedule.at(step).lr);
  if (recipe.clip_norm == 0) text += ", --clip-norm 1";
  if (recipe.precision != Precision::f32) text += ", --precision f32";
  return text + ", and check the data";
}

/// ", after a loss of 0.21 in step 40"; nothing where there was none.
std::string in_words(const GoodLoss& last) {
  if (last.step == 0) return "";
  return fmt::format(", after a loss of {:.4g} in step {}", last.loss, last.step);
}

std::string in_parameters(Replica& replica) {
  for (const nn::Parameter* parameter : replica.parameters().registry().parameters) {
    const std::int64_t found = nonfinite_in(replica.device(), parameter->value);
    if (found == 0) continue;
    return fmt::format("the parameter {} itself ({} of its {}), so an earlier update broke it",
                       parameter->name, found, numbers_of(*parameter));
  }
  return {};
}

}  // namespace

std::string to_text(const FirstBroken& found) {
  return found.where.empty() ? "" : fmt::format("{} {}", found.before, found.where);
}

FirstBroken first_broken_of(const std::string& text) {
  if (text.empty()) return {};
  return {std::stoll(text), text.substr(text.find(' ') + 1)};
}

FirstBroken find_first_nonfinite(Replica& replica, const RunSetup& setup, const Ranks& ranks,
                                 std::int64_t step, DataAxis* axis, WorldStatistics* world,
                                 StageLink* link) {
  constexpr std::int64_t kMostOfStage = std::int64_t{1}
                                        << 40;  // values: a later stage's come later
  FirstBroken first{ranks.stage() * kMostOfStage, in_parameters(replica)};
  const int rank = ranks.replica();
  data::LoaderOptions options = setup.loader;
  options.depth = 0;
  const Recipe& recipe = setup.options.recipe;
  const auto schedule = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
    if (k >= setup.partition.units(rank)) return {};
    return setup.partition.unit(step, rank, k);
  };
  const auto batches =
      make_stage_batches(replica.device(), replica.reads_samples(), ranks.is_last(),
                         setup.data.train, schedule, {options, recipe.seed, recipe.shuffle});
  replica.tape().set_inspector([&](const char* layer, const char* operation, const View& value) {
    if (!first.where.empty()) return;
    ++first.before;
    if (value.dtype() != DType::f32 && !is_narrow(value.dtype())) return;
    const std::int64_t found = nonfinite_in(replica.device(), value);
    if (found == 0) return;
    first.where = fmt::format("the output of layer {} ({}), {} of {} numbers", layer, operation,
                              found, value.count());
  });
  std::vector<std::int64_t> by_rank(static_cast<std::size_t>(setup.replicas));
  const bool meets_others = axis != nullptr || world != nullptr || link != nullptr;
  for (std::int64_t unit = 0; first.where.empty() || meets_others; ++unit) {
    const data::Batch* batch = batches->next();
    if (batch == nullptr) break;
    for (std::size_t r = 0; r < by_rank.size(); ++r) {
      by_rank[r] = setup.partition.unit(step, static_cast<int>(r), unit).size();
    }
    if (axis != nullptr) axis->begin(by_rank, setup.replica.max_train_batch);
    if (world != nullptr) {
      world->begin(std::accumulate(by_rank.begin(), by_rank.end(), std::int64_t{0}), batch->n);
    }
    if (link != nullptr) link->receive(batch->n);
    replica.forward(*batch);
    if (link != nullptr && batch->n > 0) link->send();
  }
  replica.tape().set_inspector({});
  return first;
}

void throw_nonfinite_loss(double loss, const GoodLoss& last, const RunSetup& setup,
                          std::int64_t step, const std::vector<std::string>& findings) {
  std::string where = "the sum over the samples, which is too large for a 32-bit float";
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t rank = 0; rank < findings.size(); ++rank) {
    const FirstBroken found = first_broken_of(findings[rank]);
    if (found.where.empty() || found.before >= least) continue;
    least = found.before;
    where = fmt::format("{} ({})", found.where, rank_in_words(setup, static_cast<int>(rank)));
  }
  throw NumbersError(fmt::format(
      "the loss is {} in step {} (epoch {}){}: the first broken numbers are in {}; {}. {}",
      unsigned_nan(loss), step + 1, setup.partition.epoch_of(step) + 1, in_words(last), where,
      kept_in_words(setup), remedies(setup, step)));
}

void require_finite_test(const Evaluation& test, const GoodLoss& last, const RunSetup& setup,
                         std::int64_t step) {
  if (std::isfinite(test.loss)) return;
  throw NumbersError(fmt::format(
      "the test loss is {} in step {} (epoch {}){}: the model answers test samples with numbers "
      "that are too large; no better model was replaced. {}",
      unsigned_nan(test.loss), step, setup.partition.epoch_of(step - 1) + 1, in_words(last),
      remedies(setup, step - 1)));
}

void throw_overflown_gradient(double loss, const RunSetup& setup, std::int64_t step) {
  const DType dtype = setup.options.recipe.grad_dtype;
  throw NumbersError(
      fmt::format("the gradient of step {} (epoch {}) is beyond {}, which ends at {}, though the "
                  "loss is {:.4g}; "
                  "{}. Leave --grad-dtype out, or take {}",
                  step + 1, setup.partition.epoch_of(step) + 1, name_of(dtype),
                  dtype == DType::f16 ? "65504" : "3.4e38", loss, kept_in_words(setup),
                  dtype == DType::f16 ? "bf16, which reaches as far as f32" : "a smaller --lr"));
}

void throw_many_skips(const StepSums& sums, const RunSetup& setup, std::int64_t step) {
  throw NumbersError(fmt::format(
      "{} steps in a row were skipped, the last one step {} (epoch {}): numbers are beyond f16 "
      "though the loss is scaled by no more than {:g}; the parameters were left as they were "
      "before them. Take --precision bf16, which reaches as far as f32, or a smaller --lr (now "
      "{:g}), and check the data",
      sums.skips_in_row, step + 1, setup.partition.epoch_of(step) + 1, sums.loss_scale,
      setup.schedule.at(step).lr));
}

std::string find_nonfinite_gradient(Replica& replica) {
  const nn::Parameters& parameters = replica.parameters();
  for (const nn::Parameter* parameter : parameters.registry().parameters) {
    for (const nn::PlannedParameter& planned : parameters.plan().parameters) {
      if (planned.id != parameter->id) continue;
      const std::int64_t found = nonfinite_in(
          replica.device(), parameters.gradients().slice(planned.begin, planned.gradient_end()));
      if (found == 0) continue;
      return fmt::format("the gradient of {} is the first with broken numbers, {} of its {}",
                         planned.name, found, numbers_of(*parameter));
    }
  }
  return {};
}

void throw_nonfinite_gradient(double norm, const std::string& finding, const RunSetup& setup,
                              std::int64_t step) {
  throw NumbersError(fmt::format(
      "the gradient's norm is {} in step {} (epoch {}) and cannot be clipped: {}; {}. {}",
      unsigned_nan(norm), step + 1, setup.partition.epoch_of(step) + 1,
      finding.empty() ? "no parameter's gradient shows why" : finding, kept_in_words(setup),
      remedies(setup, step)));
}

void require_finite(const HostState& state, const nn::Registry& registry, std::int64_t step) {
  const auto require_all = [&](const std::vector<std::vector<float>>& tensors, const auto& owners,
                               const std::string& what) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto finite = [](float value) { return std::isfinite(value); };
      if (std::all_of(tensors[i].begin(), tensors[i].end(), finite)) continue;
      throw NumbersError(fmt::format(
          "the update of step {} left numbers that are not finite in the {} {}; nothing was "
          "saved over the former state. Try a smaller --lr",
          step, what, owners[i]->name));
    }
  };
  require_all(state.values, registry.parameters, "parameter");
  require_all(state.buffers, registry.buffers, "buffer");
  for (const HostArena& arena : state.optimizer) {
    if (arena.is_of_rows()) continue;  // counts
    if (arena.is_of_buffers()) {
      require_all(arena.tensors, registry.buffers, arena.name + " of");
    } else {
      require_all(arena.tensors, registry.parameters, arena.name + " of");
    }
  }
}

}  // namespace ringlet::train
