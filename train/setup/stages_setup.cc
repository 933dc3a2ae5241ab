#include "train/setup/stages_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "train/forecast/unit_costs.h"
#include "train/pipeline/balance.h"
#include "train/telemetry/console.h"

namespace ringlet::train {

namespace {

/// Nothing where the text is no number.
std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size();
  if (error == std::errc() && whole) return number;
  return {};
}

nn::InputSpec input_of(const ReplicaSpec& spec) {
  const nn::ModelInput& input = spec.input;
  return {.shape = {spec.max_train_batch, input.channels, input.height, input.width},
          .layout = spec.layout,
          .activations = activations_of(spec.recipe.precision)};
}

/// Throws ContractError for runs that stages are not for.
void check_run(const TrainOptions& options, const ReplicaSpec& spec) {
  require(
      !spec.recipe.has_margin(), "--stages",
      "a --loss with centres of classes is for a model in one stage so far; leave --stages out");
  require(options.recipe.verify.empty(), "--stages",
          "--verify is for a model in one stage so far; leave one of them out");
  require(task_of(spec)->takes_stages() && spec.fields.empty(), "--stages",
          "a task of the program's own is for a model in one stage; leave --stages out");
  const bool on_gpus = options.execution.devices.front().kind != DeviceKind::cpu;
  require(!on_gpus || options.execution.transport != TransportChoice::nccl, "--stages",
          "NCCL joins the replicas of a model in one stage so far; take --transport local or gloo");
}

std::shared_ptr<const StageSpec> stage_spec(const nn::Units& units, const nn::StageCut& cut) {
  return std::make_shared<const StageSpec>(StageSpec{units, cut});
}

/// The stages that the model's planned costs say, as `ringlet pipeline --balance planned` does.
nn::Stages balanced(const ReplicaSpec& spec, const nn::Units& units, int stages,
                    int micro_batches) {
  units.require_stages(stages);
  CutModel model = make_cut_model(spec);
  const UnitCosts costs = plan_costs(model);
  return nn::cut_before(units,
                        begins_of(costs, balance(balance_input(costs, stages, micro_batches))));
}

}  // namespace

int stages_in(const std::string& stages) {
  const auto number = number_in(stages);
  if (!number) return static_cast<int>(std::count(stages.begin(), stages.end(), ',')) + 1;
  if (*number < 1) {
    throw ContractError("--stages " + stages + ": a model has one stage at least; take 1 or more");
  }
  return *number;
}

int replicas_in(int world, const Execution& execution) {
  const int stages = stages_in(execution.stages);
  if (world % stages == 0) return world / stages;
  throw ContractError(
      fmt::format("--stages {}: {} devices are no multiple of {} stages; give each stage as many",
                  execution.stages, world, stages));
}

std::shared_ptr<const StagesSetup> stages_of(const TrainOptions& options, const ReplicaSpec& spec) {
  const std::string& written = options.execution.stages;
  const int count = stages_in(written);
  if (count == 1) return nullptr;
  check_run(options, spec);
  auto setup = std::make_shared<StagesSetup>();
  setup->model = make_model(spec);
  setup->registry = nn::register_model(*setup->model);
  const nn::Units units = nn::units_of(*setup->model, setup->registry, input_of(spec), spec.fuse);
  setup->cuts = number_in(written) ? balanced(spec, units, count, options.recipe.accumulate)
                                   : nn::parse_stages(written, units);
  for (const nn::StageCut& cut : setup->cuts) {
    setup->specs.push_back(stage_spec(units, cut));
    std::int64_t& parameters = setup->parameters.emplace_back();
    const auto stage = nn::stage_of(*setup->model, units, cut.begin, cut.end);
    for (const nn::Parameter* p : nn::register_model(*stage).parameters) {
      parameters += p->shape.count();
    }
  }
  setup->registry = nn::register_model(*setup->model);  // anew: stages number theirs
  const auto task = task_of(spec);
  setup->plan = nn::plan_training(setup->registry, batch_of(spec, spec.max_train_batch),
                                  pass_of(spec, *task, *setup->model, true), spec.fuse);
  return setup;
}

std::string stages_in_words(const StagesSetup& stages, PipelineSchedule schedule,
                            std::int64_t micro_batches) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < stages.cuts.size(); ++i) {
    parts.push_back(fmt::format("{} ({} parameters)", stages.cuts[i].layers,
                                with_commas(stages.parameters[i])));
  }
  const double idle = stages.count() - 1;
  const double share = schedule == PipelineSchedule::naive
                           ? idle / stages.count()
                           : idle / (static_cast<double>(micro_batches) + idle);
  return fmt::format("{} by {}, {} micro-batch{}, bubble {:.0f} % where all take as long: {}",
                     stages.count(), name_of(schedule), micro_batches,
                     micro_batches == 1 ? "" : "es", 100 * share, fmt::join(parts, ", "));
}

std::string name_of_rank(const StagesSetup& stages, int rank, int replicas) {
  const nn::StageCut& cut = stages.cuts.at(static_cast<std::size_t>(rank / replicas));
  return fmt::format("{}, replica {}, rank {}", nn::in_words(cut), rank % replicas, rank);
}

}  // namespace ringlet::train
