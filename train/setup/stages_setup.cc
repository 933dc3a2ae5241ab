#include "train/setup/stages_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <typeinfo>

#include "base/memory_limits.h"
#include "base/stopwatch.h"
#include "comm/core/rank_text.h"
#include "comm/shared_text.h"
#include "kernels/device.h"
#include "nn/variable.h"
#include "train/recipe/precision_support.h"
#include "train/setup/stage_rehearsal.h"

namespace ringlet::train {

namespace {

/// A model that notes what it is given, and what comes of that.
class WatchedModel : public nn::Layer {
 public:
  explicit WatchedModel(nn::Layer& model) : model_(model) {}
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    ++calls;
    taken = x;
    return given = model_.forward(tape, x);
  }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    model_.register_in(registry, prefix);
  }
  int calls = 0;
  nn::Variable taken{}, given{};

 private:
  nn::Layer& model_;
};

/// Whether a task's answer is what the model makes of the images, as a dry run shows. Stages run
/// the model, and nothing before it or behind.
bool answers_by_model_alone(ReplicaSpec spec) {
  spec.recipe.precision = Precision::f32;  // else images are cast, and are no longer themselves
  const auto body = make_body(spec);
  const auto task = task_of(spec);
  WatchedModel model(*body);
  bool alone = false;
  const auto pass = [&](nn::Tape& tape, const nn::Batch& batch) {
    model.calls = 0;
    nn::Variable answer;
    try {
      answer = task->output(tape, model, batch);
    } catch (const std::bad_cast&) {  // it wants more of its model than forward()
      return answer;
    }
    const auto same = [](const nn::Variable& a, const nn::Variable& b) {
      return !a.absent() && a.node() == b.node() && a.shape() == b.shape();
    };
    alone = model.calls == 1 && same(model.taken, batch[nn::kImages]) && same(answer, model.given);
    return answer;
  };
  (void)nn::plan_evaluation(nn::register_model(model), batch_of(spec, 1), pass, spec.fuse);
  return alone;
}

/// Throws ContractError for runs that stages are not for.
void check_run(const TrainOptions& options, const ReplicaSpec& spec) {
  require(spec.input.channels > 0, "--stages",
          "stages begin with the images of a batch, and these data have none; leave --stages out");
  require(!spec.task || answers_by_model_alone(spec), "--stages",
          "the task's output() is not the model's answer to the images alone, which is all that "
          "stages run; move what it does into the model or into loss(), or leave --stages out");
  const bool on_gpus = options.execution.devices.front().kind != DeviceKind::cpu;
  require(!on_gpus || options.execution.transport != TransportChoice::nccl, "--stages",
          "NCCL joins the replicas of a model in one stage so far; take --transport local or gloo");
}

DeviceOptions device_options(const Execution& execution) {
  return {.threads = execution.threads,
          .overlap = false,
          .bf16 = bf16_products(execution.emulate_precision),
          .tf32 = execution.tf32,
          .deterministic = execution.deterministic};
}

/// Of a device that nothing of the run is on yet; 0 of processors, which share the machine's.
std::int64_t room_on(const Device& device) {
  if (device.id().kind == DeviceKind::cpu) return 0;
  return device.free_bytes() - device.scratch_limit();
}

/// What the first process finds out for all.
struct Findings {
  UnitCosts costs;
  std::int64_t room = 0;  ///< of the run's first device, for all ranks on it; 0: not known
};

/// Where the first replica stands among those over which rows are cut. It has the most.
nn::AxisPosition first_of(const TrainOptions& options, const std::vector<std::int64_t>& sizes,
                          int replicas) {
  const int accumulate = options.recipe.accumulate;
  const int shards = static_cast<int>(sizes.size()) / accumulate * replicas;
  return {.ranks = replicas, .shards = options.recipe.exact ? shards : 0, .accumulate = accumulate};
}

/// About a third of a second in all.
UnitCosts measured(CutModel& model, Device& device) {
  constexpr double kSeconds = .3;
  const auto parts = static_cast<double>(model.units.begins().size() + 1);
  return measure_costs(model, device, {.seconds = kSeconds / parts});
}

/// What `look` finds as numbers: in the first process, which tells the others.
template <class Look>
std::vector<double> found_by_first(const Execution& execution, comm::Group* group,
                                   const std::string& what, const Look& look) {
  // JSON has digits enough for each double to come back.
  const auto in_words = [&] { return nlohmann::json(look()).dump(); };
  if (!execution.in_processes) return look();
  return nlohmann::json::parse(comm::from_first(*group, what, execution.comm_timeout, in_words))
      .template get<std::vector<double>>();
}

Findings find_out(const Execution& execution, CutModel& model, comm::Group* group) {
  Findings found{plan_costs(model)};
  if (mixes_kinds(execution)) return found;  // what one takes says nothing of the other
  const bool told = !execution.in_processes || group != nullptr;
  const bool measures = execution.measures_stages && told;
  const bool on_gpus = execution.devices.front().kind != DeviceKind::cpu;
  if (!measures && !(on_gpus && told)) return found;
  const auto look = [&] {
    const auto device = open_device(execution.devices.front(), device_options(execution));
    std::vector<double> numbers{static_cast<double>(room_on(*device))};
    if (measures) {
      const std::vector<double> costs = numbers_of(measured(model, *device));
      numbers.insert(numbers.end(), costs.begin(), costs.end());
    }
    return numbers;
  };
  const std::vector<double> numbers = found_by_first(execution, group, "costs of the layers", look);
  found.room = static_cast<std::int64_t>(numbers.front());
  if (measures) {
    take_numbers(found.costs, std::span(numbers).subspan(1));
    found.costs.measured = true;
  }
  return found;
}

/// Whether all ranks are threads of this machine's processors, which share its memory and caches.
bool share_processors(const Execution& execution, const comm::Group* group) {
  const auto on_cpu = [](const DeviceId& device) { return device.kind == DeviceKind::cpu; };
  return std::ranges::all_of(execution.devices, on_cpu) &&
         (group == nullptr || group->machines() == 1);
}

/// Adds what the stages take together.
void rehearse(const TrainOptions& options, const ReplicaSpec& spec, const StagesSetup& setup,
              comm::Group* group, ForecastOptions& how) {
  const auto look = [&] {
    StageRehearsal rehearsal{.execution = options.execution,
                             .whole = spec,
                             .make_optimizer = options.make_optimizer,
                             .sizes = how.sizes,
                             .replicas = how.replicas};
    choose_length(rehearsal, setup.count(), setup.forecast.step.seconds);
    const RehearsedStages found = rehearse_stages(setup, rehearsal);
    std::vector<double> numbers(found.scratch.begin(), found.scratch.end());
    std::ranges::copy(numbers_of(found.times), std::back_inserter(numbers));
    return numbers;
  };
  const std::vector<double> numbers =
      found_by_first(options.execution, group, "times of the stages", look);
  const std::span all(numbers);
  const auto count = static_cast<std::size_t>(setup.count());
  require(all.size() >= count, "--stages", "the first process tells of other stages");
  for (const double bytes : all.first(count)) {
    how.scratch.push_back(static_cast<std::int64_t>(bytes));
  }
  how.together = times_of(all.subspan(count), setup.count());
}

/// The devices of a stage's replicas; where others have some of them, the processes.
std::string devices_in_words(const Execution& execution, int stage, int replicas, int first_rank) {
  const int own = static_cast<int>(execution.devices.size());
  const int begin = stage * replicas, last = begin + replicas - 1;
  const int from = begin / own, to = last / own;
  if (from != to) return fmt::format("processes {} .. {}", from, to);
  if (from != first_rank / own) return fmt::format("process {}", from);
  const auto name = [&](int rank) {
    return execution.devices[static_cast<std::size_t>(rank - first_rank)].to_string();
  };
  return name(begin) == name(last) ? name(begin) : name(begin) + " .. " + name(last);
}

/// The devices of this process, with what they have.
std::vector<StageRoom> rooms_of(const Execution& execution, int replicas, int first_rank) {
  std::map<std::string, StageRoom> rooms;
  for (std::size_t i = 0; i < execution.devices.size(); ++i) {
    const DeviceId& id = execution.devices[i];
    const bool on_cpu = id.kind == DeviceKind::cpu;
    StageRoom& room = rooms[on_cpu ? "" : id.to_string()];
    if (room.stages.empty() && on_cpu) {
      room = {"this machine", static_cast<std::int64_t>(usable_memory())};
    } else if (room.stages.empty()) {
      room = {id.to_string(), room_on(*open_device(id, device_options(execution)))};
    }
    room.stages.push_back((first_rank + static_cast<int>(i)) / replicas);
  }
  std::vector<StageRoom> list;
  for (const auto& [name, room] : rooms) list.push_back(room);
  return list;
}

}  // namespace

std::shared_ptr<const StagesSetup> stages_of(const TrainOptions& options, const ReplicaSpec& spec,
                                             const std::vector<std::int64_t>& sizes, int replicas,
                                             comm::Group* group) {
  const Execution& execution = options.execution;
  const int count = stages_in(execution.stages);
  const bool by_number = is_stage_count(execution.stages);
  if (count == 1 && by_number) return nullptr;
  check_run(options, spec);
  CutModel cut = make_cut_model(spec, options.make_optimizer, first_of(options, sizes, replicas));
  const auto by_hand = by_number ? nn::Stages() : nn::parse_stages(execution.stages, cut.units);
  if (count == 1) return nullptr;  // of names that are all there
  cut.units.require_stages(count);
  auto setup = std::make_shared<StagesSetup>();
  const Stopwatch watch;
  const Findings found = find_out(execution, cut, group);

  const int first_rank = group != nullptr ? group->first_rank() : 0;
  ForecastOptions how{.schedule = execution.pipeline,
                      .sizes = sizes,
                      .replicas = replicas,
                      .recompute = execution.recompute};
  if (found.room > 0) {
    const auto sharing =
        std::count(execution.devices.begin(), execution.devices.end(), execution.devices.front());
    how.capacity.assign(static_cast<std::size_t>(count), found.room / sharing);
  }
  setup->cuts = by_hand.empty() ? balanced_stages(cut, found.costs, count, how) : by_hand;
  for (int stage = 0; stage < count; ++stage) {
    how.devices.push_back(devices_in_words(execution, stage, replicas, first_rank));
  }
  setup->forecast = forecast(cut, found.costs, setup->cuts, how);
  require_fit(setup->forecast, rooms_of(execution, replicas, first_rank));
  setup->specs = specs_of(cut.units, setup->cuts);
  if (found.costs.measured && can_rehearse(spec) && share_processors(execution, group)) {
    rehearse(options, spec, *setup, group, how);
    setup->forecast = forecast(cut, found.costs, setup->cuts, how);
    require_fit(setup->forecast, rooms_of(execution, replicas, first_rank));
  }
  if (found.costs.measured) setup->measured_seconds = watch.seconds();

  setup->model = make_model(spec);
  setup->registry = nn::register_model(*setup->model);
  const auto task = task_of(spec);
  setup->plan = nn::plan_training(setup->registry, batch_of(spec, spec.max_train_batch),
                                  pass_of(spec, *task, *setup->model, true), spec.fuse);
  return setup;
}

std::vector<std::shared_ptr<const StageSpec>> specs_of(const nn::Units& units,
                                                       const nn::Stages& cuts) {
  std::vector<std::shared_ptr<const StageSpec>> specs;
  for (const nn::StageCut& cut : cuts) {
    specs.push_back(std::make_shared<const StageSpec>(StageSpec{units, cut}));
  }
  return specs;
}

void require_fit(const Forecast& forecast, const std::vector<StageRoom>& rooms) {
  const auto bytes_of = [&](int stage) {
    return forecast.stages.at(static_cast<std::size_t>(stage)).bytes();
  };
  for (const StageRoom& room : rooms) {
    std::int64_t needed = 0;
    for (const int stage : room.stages) needed += bytes_of(stage);
    if (needed <= room.bytes) continue;
    const int largest = *std::max_element(room.stages.begin(), room.stages.end(),
                                          [&](int a, int b) { return bytes_of(a) < bytes_of(b); });
    const StageRow& row = forecast.stages[static_cast<std::size_t>(largest)];
    throw ContractError(fmt::format(
        "--stages: stage {} ({}) needs {}, all stages on {} together {}, and it has {}; take more "
        "stages on more devices, more micro-batches or a smaller batch",
        row.stage, row.layers, bytes_in_words(row.bytes()), room.device, bytes_in_words(needed),
        bytes_in_words(room.bytes)));
  }
}

ReplicaSpec spec_of_stage(ReplicaSpec whole, const StagesSetup& stages, const Pipeline& pipeline,
                          int stage, bool recompute) {
  whole.stage = stages.specs.at(static_cast<std::size_t>(stage));
  whole.passes = pipeline.held(stage);
  whole.recompute = recompute;
  return whole;
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
