#include "train/forecast/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "kernels/tensor.h"
#include "train/batches/partition.h"

namespace ringlet::train {

namespace {

std::size_t to_index(int index) { return static_cast<std::size_t>(index); }

int count_of(const ForecastOptions& options) { return static_cast<int>(options.sizes.size()); }

/// The parts of a stage: [begin, end).
Range parts_of(const UnitCosts& costs, const nn::StageCut& stage) {
  const auto first = std::lower_bound(costs.begins.begin(), costs.begins.end(), stage.begin);
  const auto last = std::lower_bound(costs.begins.begin(), costs.begins.end(), stage.end);
  require(first != costs.begins.end() && *first == stage.begin, "forecast",
          "the costs are those of another model");
  return {first - costs.begins.begin(), last - costs.begins.begin()};
}

StageRow row_of(const StageBytes& bytes) {
  StageRow row;
  row.parameters = bytes.parameters;
  row.pass_bytes = bytes.pass;
  row.standing_bytes = bytes.standing;
  row.kept_bytes = bytes.kept;
  row.evaluation_bytes = bytes.evaluation;
  return row;
}

StageRow row_of(CutModel& model, const UnitCosts& costs, const nn::StageCut& stage) {
  const StageBytes bytes = plan_stage(model, stage.begin, stage.end);
  StageRow row = row_of(bytes);
  row.stage = stage.index;
  row.layers = stage.layers;
  const Range parts = parts_of(costs, stage);
  for (std::int64_t part = parts.begin; part < parts.end; ++part) {
    const UnitCost& cost = costs.parts[static_cast<std::size_t>(part)];
    row.forward += cost.forward;
    row.backward += cost.backward;
    row.update += cost.update;
  }
  if (!costs.measured) {  // inside of a stage less is copied than between its parts
    row.forward = bytes.forward;
    row.backward = bytes.backward;
    row.update = bytes.update;
  }
  return row;
}

double passes_and_syncs(const Simulation& step) {
  double seconds = 0;
  for (const StageUse& stage : step.stages) seconds += stage.busy - stage.again + stage.syncing;
  return seconds;
}

/// Passes of a step by those of one with fewer micro-batches: its first, its last, and between them
/// the middle one as often as it takes.
std::vector<double> stretched(const std::vector<double>& some, const std::vector<double>& scales) {
  const std::size_t all = scales.size(), count = some.size();
  if (count == 0 || count == all) return some;
  require(count < all, "forecast", "the times are those of more micro-batches");
  const std::size_t middle = count / 2, behind = count - 1 - middle;
  std::vector<double> passes;
  for (std::size_t k = 0; k < all; ++k) {
    const std::size_t from =
        k < middle ? k : std::max(middle, k + behind < all ? middle : k + count - all);
    passes.push_back(some[from] * scales[k]);
  }
  return passes;
}

/// Plays the step once more by what the stages took together.
void play_together(Forecast& made, const Pipeline& pipeline, const PipelineTimes& together) {
  const double on_one_device = passes_and_syncs(made.step);
  PipelineTimes& times = made.times;
  times.forward = together.forward;
  times.backward = together.backward;
  times.activation = together.activation;
  times.gradient = together.gradient;
  times.sync = together.sync;
  times.update = together.update;
  for (const auto& passes : together.forwards) {
    times.forwards.push_back(stretched(passes, times.scales));
  }
  for (const auto& passes : together.backwards) {
    times.backwards.push_back(stretched(passes, times.scales));
  }
  for (StageRow& row : made.stages) {
    row.forward = times.forward.at(to_index(row.stage));
    row.backward = times.backward.at(to_index(row.stage));
    row.update = times.update.at(to_index(row.stage));
  }
  made.step = simulate(pipeline, times);
  made.step.speedup = on_one_device / made.step.seconds;
  if (pipeline.schedule == name_of(PipelineSchedule::naive)) made.naive = made.step;
}

/// Of an all-reduce that moves the least a rank can: gradients come and go.
double sum_cost(const UnitCosts& costs, const StageRow& row, int replicas) {
  const double bytes = 4 * static_cast<double>(row.parameters);
  return costs.per_byte * bytes * 2 * (replicas - 1) / replicas;
}

std::string sizes_in_words(const std::vector<std::int64_t>& sizes) {
  if (sizes.front() == sizes.back()) return fmt::format("{}", sizes.front());
  return fmt::format("{} or {}", sizes.front(), sizes.back());
}

nlohmann::json to_json(const Simulation& simulation, bool measured) {
  nlohmann::json json{{"bubble", simulation.bubble}, {"speedup", simulation.speedup}};
  if (measured) json["step_seconds"] = simulation.seconds;
  return json;
}

}  // namespace

int usual_micro_batches(int stages, std::int64_t samples, DeviceKind device) {
  constexpr int kEach = 4;
  const auto most = static_cast<int>(
      std::max<std::int64_t>(1, std::min<std::int64_t>(samples, std::int64_t{kEach} * stages)));
  if (device != DeviceKind::cpu) return most;
  for (int count = most; count >= std::min(stages, most); --count) {
    if (samples % (count * kLanes) == 0) return count;
  }
  return most;
}

std::vector<std::int64_t> micro_batch_sizes(std::int64_t samples, int micro_batches) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < micro_batches; ++i) {
    sizes.push_back(part_of({0, samples}, micro_batches, i).size());
  }
  return sizes;
}

nn::Stages balanced_stages(CutModel& model, const UnitCosts& costs, int stages,
                           const ForecastOptions& options) {
  model.units.require_stages(stages);
  BalanceInput input = balance_input(costs, stages, count_of(options));
  input.capacity = options.capacity;
  const Pipeline pipeline = make_pipeline(options.schedule, stages, count_of(options));
  // A stage needs less than its parts together: what goes from one to the next is there once.
  std::map<std::pair<int, int>, StageRow> rows;
  input.bytes = [&](int stage, int begin, int end) {
    const auto unit = [&](int part) {
      return part == std::ssize(costs.begins) ? model.units.count() : costs.begins[to_index(part)];
    };
    const auto [found, is_new] = rows.try_emplace({begin, end});
    StageRow& row = found->second;
    if (is_new) row = row_of(plan_stage(model, unit(begin), unit(end)));
    row.held = pipeline.held(stage);
    row.recompute = options.recompute;
    return row.bytes();
  };
  return nn::cut_before(model.units, begins_of(costs, balance(input)));
}

Forecast forecast(CutModel& model, const UnitCosts& costs, const nn::Stages& stages,
                  const ForecastOptions& options) {
  const auto p = static_cast<int>(stages.size());
  const Pipeline pipeline = make_pipeline(options.schedule, p, count_of(options));
  Forecast made{.schedule = pipeline.schedule,
                .measured = costs.measured,
                .together = options.together.has_value(),
                .replicas = options.replicas,
                .sizes = options.sizes};
  PipelineTimes& times = made.times;
  times.recompute = options.recompute;
  for (const nn::StageCut& stage : stages) {
    StageRow row = row_of(model, costs, stage);
    row.held = pipeline.held(stage.index);
    row.recompute = options.recompute;
    row.micro_batches = count_of(options);
    row.device = options.devices.empty() ? "" : options.devices.at(to_index(stage.index));
    row.scratch_bytes = options.scratch.empty() ? 0 : options.scratch.at(to_index(stage.index));
    row.capacity = options.capacity.empty() ? 0 : options.capacity.at(to_index(stage.index));
    times.forward.push_back(row.forward);
    times.backward.push_back(row.backward);
    times.sync.push_back(sum_cost(costs, row, options.replicas));
    times.update.push_back(row.update);
    times.pass_bytes.push_back(row.pass_bytes);
    times.kept_bytes.push_back(row.kept_bytes);
    made.stages.push_back(row);
    if (stage.index == 0) continue;
    const auto cut = static_cast<std::size_t>(parts_of(costs, stage).begin - 1);
    made.crossing.push_back(costs.activation[cut]);
    times.activation.push_back(costs.per_byte * static_cast<double>(costs.activation[cut]));
    times.gradient.push_back(costs.per_byte * static_cast<double>(costs.gradient[cut]));
  }
  for (const std::int64_t size : options.sizes) {
    times.scales.push_back(static_cast<double>(size) / static_cast<double>(options.sizes.front()));
  }
  made.naive = simulate(make_pipeline(PipelineSchedule::naive, p, count_of(options)), times);
  made.step = simulate(pipeline, times);
  if (options.together) play_together(made, pipeline, *options.together);
  return made;
}

std::vector<double> numbers_of(const PipelineTimes& together) {
  std::vector<double> numbers;
  const auto add = [&](const std::vector<double>& list) {
    numbers.insert(numbers.end(), list.begin(), list.end());
  };
  for (const auto* list : {&together.forward, &together.backward, &together.sync, &together.update,
                           &together.activation, &together.gradient}) {
    add(*list);
  }
  for (const auto* passes : {&together.forwards, &together.backwards}) {
    for (const std::vector<double>& of_stage : *passes) add(of_stage);
  }
  return numbers;
}

PipelineTimes times_of(std::span<const double> numbers, int stages) {
  const std::size_t p = to_index(stages), alike = 6 * p - 2;
  require(numbers.size() >= alike && (numbers.size() - alike) % (2 * p) == 0, "times_of",
          "the times are those of other stages");
  const std::size_t micro_batches = (numbers.size() - alike) / (2 * p);
  const auto take = [&](std::size_t count) {
    const std::span<const double> list = numbers.first(count);
    numbers = numbers.subspan(count);
    return std::vector<double>(list.begin(), list.end());
  };
  PipelineTimes times;
  for (auto* list : {&times.forward, &times.backward, &times.sync, &times.update}) *list = take(p);
  for (auto* list : {&times.activation, &times.gradient}) *list = take(p - 1);
  if (micro_batches == 0) return times;
  for (auto* passes : {&times.forwards, &times.backwards}) {
    for (std::size_t stage = 0; stage < p; ++stage) passes->push_back(take(micro_batches));
  }
  return times;
}

std::string in_words(const Forecast& forecast) {
  const auto m = forecast.sizes.size();
  const std::string step =
      forecast.measured ? fmt::format(", {:.1f} ms a step", 1e3 * forecast.step.seconds) : "";
  return fmt::format(
      "{}, {} micro-batch{} of {}: bubble {:.0f} %, predicted {:.2f}x of one device{}{}; naive "
      "{:.2f}x",
      forecast.schedule, m, m == 1 ? "" : "es", sizes_in_words(forecast.sizes),
      100 * forecast.step.bubble, forecast.step.speedup, forecast.replicas > 1 ? " a replica" : "",
      step, forecast.naive.speedup);
}

std::string memory_in_words(const Forecast& forecast) {
  std::string text;
  for (const StageRow& row : forecast.stages) {
    if (row.capacity == 0) return "";
    if (row.fits()) continue;
    text += fmt::format("{}stage {} ({}) needs {} and its device has {}", text.empty() ? "" : "; ",
                        row.stage, row.layers, bytes_in_words(row.bytes()),
                        bytes_in_words(row.capacity));
  }
  if (!text.empty()) return "does not fit: " + text;
  const auto fullest = std::max_element(
      forecast.stages.begin(), forecast.stages.end(), [](const StageRow& a, const StageRow& b) {
        return static_cast<double>(a.bytes()) / static_cast<double>(a.capacity) <
               static_cast<double>(b.bytes()) / static_cast<double>(b.capacity);
      });
  return fmt::format("each stage fits its device: stage {} fills most of it, {} of {}",
                     fullest->stage, bytes_in_words(fullest->bytes()),
                     bytes_in_words(fullest->capacity));
}

nlohmann::json to_json(const Forecast& forecast) {
  nlohmann::json cuts = nlohmann::json::array();
  for (std::size_t i = 0; i < forecast.crossing.size(); ++i) {
    nlohmann::json cut{{"activation_bytes", forecast.crossing[i]}};
    if (forecast.measured) {
      cut["activation_seconds"] = forecast.times.activation[i];
      cut["gradient_seconds"] = forecast.times.gradient[i];
    }
    cuts.push_back(std::move(cut));
  }
  nlohmann::json json = to_json(forecast.step, forecast.measured);
  json["schedule"] = forecast.schedule;
  json["costs"] = forecast.measured ? "measured" : "planned";
  json["together"] = forecast.together;
  json["replicas"] = forecast.replicas;
  json["micro_batches"] = forecast.sizes;
  json["stages"] = to_json(forecast.stages, forecast.measured);
  json["cuts"] = std::move(cuts);
  json["naive"] = to_json(forecast.naive, forecast.measured);
  return json;
}

}  // namespace ringlet::train
