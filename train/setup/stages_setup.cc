#include "train/setup/stages_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "comm/core/rank_text.h"
#include "train/pipeline/balance.h"

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
  require(task_of(spec)->takes_stages() && spec.fields.empty(), "--stages",
          "a task of the program's own is for a model in one stage; leave --stages out");
  const bool on_gpus = options.execution.devices.front().kind != DeviceKind::cpu;
  require(!on_gpus || options.execution.transport != TransportChoice::nccl, "--stages",
          "NCCL joins the replicas of a model in one stage so far; take --transport local or gloo");
}

std::shared_ptr<const StageSpec> stage_spec(const nn::Units& units, const nn::StageCut& cut) {
  return std::make_shared<const StageSpec>(StageSpec{units, cut});
}

/// By the dry run: operations, and as many as take as long as moving its bytes.
double cost_of(const WorkTotals& work) { return work.flops + kFlopsPerByte * work.bytes; }

/// The stages that the planned costs of all parts say, of which no cut may split one.
nn::Stages balanced(const ReplicaSpec& spec, const nn::Units& units, int stages) {
  units.require_stages(stages);
  BalanceInput input{.stages = stages};
  const nn::Stages parts = nn::cut_before(units, units.begins());
  const auto task = task_of(spec);
  for (const nn::StageCut& cut : parts) {
    ReplicaSpec part = spec;
    part.stage = stage_spec(units, cut);
    const auto layer = make_model(part);
    const nn::Plan plan =
        nn::plan_training(nn::register_model(*layer), batch_of(part, spec.max_train_batch),
                          pass_of(part, *task, *layer, true), spec.fuse);
    input.units.push_back(
        {.name = cut.layers, .forward = cost_of(plan.forward), .backward = cost_of(plan.backward)});
  }
  std::vector<int> begins;
  for (const int cut : balance(input)) begins.push_back(parts[static_cast<std::size_t>(cut)].begin);
  return nn::cut_before(units, begins);
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
  setup->cuts =
      number_in(written) ? balanced(spec, units, count) : nn::parse_stages(written, units);
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

std::string name_of_ranks(const StagesSetup& stages, const std::vector<int>& ranks, int replicas) {
  std::string names;
  for (int stage = 0; stage < stages.count(); ++stage) {
    std::vector<int> own, own_replicas;
    for (const int rank : ranks) {
      if (rank / replicas != stage) continue;
      own.push_back(rank);
      own_replicas.push_back(rank % replicas);
    }
    if (own.empty()) continue;
    names += fmt::format("{}{}, {}, {}", names.empty() ? "" : " and ",
                         nn::in_words(stages.cuts[static_cast<std::size_t>(stage)]),
                         comm::text_of("replica", own_replicas), comm::text_of(own));
  }
  return names;
}

std::string name_of_rank(const StagesSetup& stages, int rank, int replicas) {
  return name_of_ranks(stages, {rank}, replicas);
}

}  // namespace ringlet::train
