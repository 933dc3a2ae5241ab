// What a pipeline costs and is told to do: planned and measured units, cuts by them, the table of
// stages, and a step that is played.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "nn/ops/softmax_cross_entropy.h"
#include "train/forecast/forecast.h"

namespace ringlet::train {
namespace {

using Sizes = std::vector<std::int64_t>;

CutModel cut_model(const char* name, std::int64_t samples, Precision precision = Precision::f32) {
  ReplicaSpec spec{.recipe = default_recipe(name),
                   .input = {.channels = 3, .height = 16, .width = 16, .outputs = 4},
                   .layout = Layout::lanes,
                   .max_train_batch = samples};
  spec.recipe.precision = precision;
  return make_cut_model(spec);
}

double sum(const std::vector<UnitCost>& parts, double UnitCost::*cost) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [&](double all, const UnitCost& part) { return all + part.*cost; });
}

/// A part of what the other is.
double beside(double value, double whole) { return value / whole; }

TEST(UnitCosts, PlannedOnesAddUpToTheWholes) {
  for (const char* name : {"lenet", "resnet20", "resnet18"}) {
    CutModel model = cut_model(name, 16);
    const UnitCosts costs = plan_costs(model);
    EXPECT_FALSE(costs.measured);
    ASSERT_EQ(costs.parts.size(), model.units.begins().size() + 1) << name;
    ASSERT_EQ(costs.activation.size() + 1, costs.parts.size());
    const StageBytes whole = plan_stage(model, 0, model.units.count());
    // A part copies the gradient that it begins with.
    EXPECT_NEAR(beside(sum(costs.parts, &UnitCost::forward), whole.forward), 1, .01) << name;
    EXPECT_GE(sum(costs.parts, &UnitCost::backward), whole.backward) << name;
    EXPECT_NEAR(beside(sum(costs.parts, &UnitCost::backward), whole.backward), 1, .12) << name;
    EXPECT_NEAR(beside(sum(costs.parts, &UnitCost::update), whole.update), 1, .01) << name;
    std::int64_t standing = 0;
    for (const UnitCost& part : costs.parts) standing += part.bytes;
    EXPECT_NEAR(beside(static_cast<double>(standing), static_cast<double>(whole.standing)), 1, .05)
        << name;
    for (std::size_t cut = 0; cut < costs.activation.size(); ++cut) {
      const nn::Crossing& crossing = model.units[costs.begins[cut + 1]].input;
      EXPECT_EQ(costs.activation[cut], crossing.bytes);
      EXPECT_EQ(costs.gradient[cut], crossing.wants_gradient ? crossing.bytes : 0);
    }
  }
}

TEST(UnitCosts, OfAStageAreItsOwnNumbersAlone) {
  CutModel model = cut_model("resnet18", 16);
  ASSERT_EQ(model.numbers_kept, 1);  // SGD's velocity
  const int cut = model.units.find("layer3").begin;
  const StageBytes first = plan_stage(model, 0, cut);
  const StageBytes second = plan_stage(model, cut, model.units.count());
  const StageBytes whole = plan_stage(model, 0, model.units.count());
  EXPECT_EQ(first.parameters + second.parameters, whole.parameters);
  for (const StageBytes& stage : {first, second}) {
    const auto numbers = static_cast<double>(stage.standing) / sizeof(float);
    EXPECT_NEAR(numbers / static_cast<double>(stage.parameters), 3, .06);
  }
  const auto layer = nn::stage_of(*model.model, model.units, cut, model.units.count());
  const nn::Plan plan = nn::plan_training(*layer, nn::register_model(*layer), model.units,
                                          {.begin = cut, .end = model.units.count()}, model.input,
                                          nn::softmax_cross_entropy);
  EXPECT_EQ(second.pass, plan.activation_bytes + model.units[cut].input.bytes);
  model.spec.recipe.optimizer = "adamw";
  EXPECT_EQ(make_cut_model(model.spec).numbers_kept, 2);
}

TEST(UnitCosts, AreMeasuredOfEachPart) {
  const auto device = open_device({}, {.overlap = false});
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    CutModel model = cut_model("resnet20", 18, precision);
    const UnitCosts planned = plan_costs(model);
    const UnitCosts costs = measure_costs(model, *device, {.seconds = .001});
    EXPECT_TRUE(costs.measured);
    ASSERT_EQ(costs.parts.size(), planned.parts.size());
    for (std::size_t i = 0; i < costs.parts.size(); ++i) {
      EXPECT_GT(costs.parts[i].forward, 0);
      EXPECT_LT(costs.parts[i].forward, 1);
      EXPECT_GT(costs.parts[i].backward, 0);
      EXPECT_EQ(costs.parts[i].bytes, planned.parts[i].bytes);
      EXPECT_EQ(costs.parts[i].pass_bytes, planned.parts[i].pass_bytes);
    }
    EXPECT_GT(costs.per_byte, 1e-13);
    EXPECT_LT(costs.per_byte, 1e-6);
    UnitCosts received = planned;
    take_numbers(received, numbers_of(costs));
    EXPECT_EQ(numbers_of(received), numbers_of(costs));
    EXPECT_THROW(take_numbers(received, std::vector<double>{1, 2}), ContractError);
  }
}

// A backward of nothing would throw, and so would a part that is given another's values.
TEST(UnitCosts, AreMeasuredWhereNotAllPartsFitAtOnce) {
  const auto device = open_device({}, {.overlap = false});
  for (const char* name : {"mlp", "lenet", "resnet20"}) {
    CutModel model = cut_model(name, 16);
    const UnitCosts planned = plan_costs(model);
    std::int64_t largest = 0;
    for (const UnitCost& part : planned.parts) {
      largest = std::max(largest, part.bytes + part.pass_bytes);
    }
    const UnitCosts costs =
        measure_costs(model, *device, {.seconds = 0, .least = 1, .memory = largest});
    for (const UnitCost& part : costs.parts) EXPECT_GT(part.forward, 0) << name;
    EXPECT_LT(device->bytes_held(), largest);
    try {
      measure_costs(model, *device, {.seconds = 0, .least = 1, .memory = largest - 1});
      ADD_FAILURE() << name << ": was measured";
    } catch (const OutOfMemoryError& error) {
      EXPECT_NE(std::string(error.what()).find("take a smaller batch"), std::string::npos);
    }
  }
}

TEST(UnitCosts, CountAnUpdateOnceAStep) {
  UnitCosts costs{.parts = {{.forward = 1, .backward = 2, .update = 4},
                            {.forward = 1, .backward = 2},
                            {.forward = 1, .backward = 2}},
                  .begins = {0, 1, 2},
                  .activation = {10, 20},
                  .gradient = {0, 20},
                  .per_byte = .01};
  EXPECT_EQ(stage_seconds(balance_input(costs, 1, 5), {}), (std::vector<double>{5 * 9 + 4}));
  EXPECT_EQ(stage_seconds(balance_input(costs, 2, 5), {1}),
            (std::vector<double>{5 * (3 + .1) + 4, 5 * (6 + .1)}));
  EXPECT_EQ(balance(balance_input(costs, 2, 1)), (std::vector<int>{1}));
  EXPECT_EQ(begins_of(costs, {1, 2}), (std::vector<int>{1, 2}));
}

TEST(Forecast, CutsWhereTheSlowestStageIsFastest) {
  CutModel model = cut_model("resnet20", 16);
  const UnitCosts costs = plan_costs(model);
  for (int p = 1; p <= 4; ++p) {
    const ForecastOptions options{.sizes = micro_batch_sizes(128, 8)};
    const nn::Stages stages = balanced_stages(model, costs, p, options);
    ASSERT_EQ(std::ssize(stages), p);
    const Forecast made = forecast(model, costs, stages, options);
    double slowest = 0, all = 0;
    for (const StageRow& row : made.stages) {
      slowest = std::max(slowest, row.forward + row.backward);
      all += row.forward + row.backward;
    }
    EXPECT_LE(made.step.speedup, all / slowest + 1e-9);
    EXPECT_LE(made.step.speedup, 8.0 * p / (8 + p - 1) + 1e-9);
    EXPECT_GT(made.step.speedup, .6 * p);
    EXPECT_NEAR(made.naive.speedup, .98, .03);  // copies cost, and a later stage updates meanwhile
    for (int stage = 0; stage < p; ++stage) {
      EXPECT_EQ(made.stages[static_cast<std::size_t>(stage)].held, std::min(8, p - stage));
    }
  }
}

TEST(Forecast, KeepsToTheMemoryOfDevices) {
  CutModel model = cut_model("resnet18", 16);
  const UnitCosts costs = plan_costs(model);
  ForecastOptions options{.sizes = micro_batch_sizes(128, 8)};
  const Forecast free = forecast(model, costs, balanced_stages(model, costs, 2, options), options);
  EXPECT_EQ(memory_in_words(free), "");
  const std::int64_t last = free.stages.back().bytes();
  options.capacity = {free.stages.front().bytes(), last};
  const Forecast just = forecast(model, costs, balanced_stages(model, costs, 2, options), options);
  EXPECT_EQ(just.stages.back().layers, free.stages.back().layers) << "it fits to the byte";
  options.capacity = {std::int64_t{1} << 40, last - 1};
  const nn::Stages smaller = balanced_stages(model, costs, 2, options);
  const Forecast kept = forecast(model, costs, smaller, options);
  EXPECT_LT(kept.stages.back().bytes(), last);
  EXPECT_EQ(memory_in_words(kept).find("each stage fits its device: stage "), 0U);
  options.capacity = {std::int64_t{1} << 40, 1000};
  EXPECT_THROW(balanced_stages(model, costs, 2, options), ContractError);
  const Forecast forced = forecast(model, costs, smaller, options);
  EXPECT_NE(memory_in_words(forced).find("does not fit: stage 1 ("), std::string::npos);
  EXPECT_NE(memory_in_words(forced).find(" and its device has 1000 bytes"), std::string::npos);
}

TEST(Forecast, SumsAndCopiesTakeTheirTime) {
  CutModel model = cut_model("lenet", 16);
  UnitCosts costs = plan_costs(model);
  for (UnitCost& part : costs.parts) {
    part.forward = 1;
    part.backward = 2;
    part.update = 4;
  }
  costs.measured = true;
  costs.per_byte = 0;
  const nn::Stages stages = nn::cut_before(model.units, {costs.begins[3]});
  ForecastOptions options{.schedule = PipelineSchedule::naive, .sizes = {16, 8}};
  const double passes = 3 * 1.5 * static_cast<double>(costs.parts.size());
  const auto last = static_cast<double>(costs.parts.size() - 3);
  EXPECT_NEAR(forecast(model, costs, stages, options).step.seconds, passes + 4 * 3, 1e-9);
  costs.per_byte = 1e-3;
  const Forecast copied = forecast(model, costs, stages, options);
  const auto bytes = static_cast<double>(costs.activation[2]);
  EXPECT_EQ(copied.crossing, (Sizes{costs.activation[2]}));
  EXPECT_NEAR(copied.step.seconds, passes + 1.5 * 2 * bytes * 1e-3 + 4 * 3, 1e-9);
  EXPECT_EQ(copied.times.update, (std::vector<double>{4 * 3, 4 * last}));
  EXPECT_EQ(copied.times.sync, (std::vector<double>{0, 0}));
  options.replicas = 4;
  const Forecast summed = forecast(model, costs, stages, options);
  EXPECT_NE(in_words(summed).find("x of one device a replica, "), std::string::npos);
  const auto numbers = static_cast<double>(summed.stages[1].parameters);
  EXPECT_NEAR(summed.times.sync[1] - copied.times.sync[1], 1e-3 * 4 * numbers * 2 * 3 / 4, 1e-6);
}

TEST(Forecast, IsOfWhatStagesTakeTogether) {
  CutModel model = cut_model("lenet", 16);
  UnitCosts costs = plan_costs(model);
  for (UnitCost& part : costs.parts) part = {part.name, 1, 2, 0, part.bytes, part.pass_bytes};
  costs.measured = true;
  costs.per_byte = 0;
  const nn::Stages stages = nn::cut_before(model.units, {costs.begins[3]});
  ForecastOptions options{.schedule = PipelineSchedule::naive, .sizes = {16, 16}};
  const auto parts = static_cast<double>(costs.parts.size());
  EXPECT_FALSE(forecast(model, costs, stages, options).together);
  options.together = PipelineTimes{.forward = {10, 20},
                                   .backward = {30, 40},
                                   .activation = {1},
                                   .gradient = {2},
                                   .sync = {.25, .5},
                                   .update = {3, 4}};
  const std::vector<double> numbers = numbers_of(*options.together);
  EXPECT_EQ(numbers_of(times_of(numbers, 2)), numbers);
  EXPECT_THROW(times_of(numbers, 3), ContractError);
  const Forecast made = forecast(model, costs, stages, options);
  EXPECT_TRUE(made.together);
  const double step = 2 * (100 + 3) + 3 + .25;
  EXPECT_NEAR(made.step.seconds, step, 1e-9);
  EXPECT_NEAR(made.naive.seconds, step, 1e-9);
  EXPECT_NEAR(made.step.speedup, 2 * 3 * parts / step, 1e-9);  // one device is as fast as alone
  EXPECT_EQ(made.stages[1].backward, 40);
  EXPECT_EQ(made.stages[0].update, 3);

  options.sizes = {16, 16, 16, 8};  // those of three are known
  options.together->forwards = {{1, 2, 3}, {4, 5, 6}};
  options.together->backwards = {{7, 8, 9}, {10, 11, 12}};
  const std::vector<double> more = numbers_of(*options.together);
  EXPECT_EQ(numbers_of(times_of(more, 2)), more);
  EXPECT_THROW(times_of(std::span(more).first(more.size() - 1), 2), ContractError);
  const Forecast one_by_one = forecast(model, costs, stages, options);
  EXPECT_EQ(one_by_one.times.forwards[0], (std::vector<double>{1, 2, 2, 1.5}));
  EXPECT_EQ(one_by_one.times.backwards[1], (std::vector<double>{10, 11, 11, 6}));
  const double passes = 1 + 2 + 2 + 1.5 + 4 + 5 + 5 + 3 + 7 + 8 + 8 + 4.5 + 10 + 11 + 11 + 6;
  EXPECT_NEAR(one_by_one.step.seconds, passes + 3 * 3.5 + 3 + .25, 1e-9);
  options.sizes = {16, 16};
  EXPECT_THROW(forecast(model, costs, stages, options), ContractError);
  options.together->forwards = options.together->backwards = {};
  options.schedule = PipelineSchedule::one_f_one_b;
  EXPECT_NEAR(forecast(model, costs, stages, options).naive.seconds, 2 * 3 * parts, 1e-9);
}

TEST(Forecast, IsSaidInWords) {
  CutModel model = cut_model("lenet", 16);
  const UnitCosts costs = plan_costs(model);
  const nn::Stages stages = nn::cut_before(model.units, {costs.begins[1]});
  const Forecast made =
      forecast(model, costs, stages, {.sizes = micro_batch_sizes(18, 4), .devices = {"a", "b"}});
  const std::string words = in_words(made);
  EXPECT_EQ(words.find("1f1b, 4 micro-batches of 5 or 4: bubble "), 0U) << words;
  EXPECT_NE(words.find("x of one device; naive "), std::string::npos) << words;
  const nlohmann::json json = to_json(made);
  EXPECT_EQ(json.at("costs"), "planned");
  EXPECT_FALSE(json.contains("step_seconds"));
  EXPECT_EQ(json.at("micro_batches"), (Sizes{5, 5, 4, 4}));
  double share = 0;
  for (const auto& stage : json.at("stages")) {
    share += stage.at("forward_share").get<double>() + stage.at("backward_share").get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST(Forecast, TakesFullLanesWhereItCan) {
  EXPECT_EQ(usual_micro_batches(2, 128, DeviceKind::cpu), 8);
  EXPECT_EQ(usual_micro_batches(4, 128, DeviceKind::cpu), 8);  // 16 of them would have 8
  EXPECT_EQ(usual_micro_batches(4, 128, DeviceKind::cuda), 16);
  EXPECT_EQ(usual_micro_batches(4, 100, DeviceKind::cpu), 16);  // none has full lanes
  EXPECT_EQ(usual_micro_batches(4, 3, DeviceKind::cpu), 3);
  EXPECT_EQ(usual_micro_batches(8, 64, DeviceKind::cpu), 32);  // 4 would leave stages idle
  EXPECT_EQ(micro_batch_sizes(18, 4), (Sizes{5, 5, 4, 4}));
}

TEST(StageTable, HasARowForEachStage) {
  const std::vector<StageRow> rows{{.stage = 0,
                                    .layers = "conv1 .. layer2",
                                    .device = "cpu:0",
                                    .forward = .0141,
                                    .backward = .2984,
                                    .parameters = 683'072,
                                    .held = 2,
                                    .micro_batches = 8,
                                    .pass_bytes = 20 << 20,
                                    .standing_bytes = 3 << 20},
                                   {.stage = 1,
                                    .layers = "fc",
                                    .device = "cpu:1",
                                    .forward = .00123,
                                    .backward = 0,
                                    .parameters = 10'490'000,
                                    .micro_batches = 8,
                                    .pass_bytes = 1536,
                                    .standing_bytes = std::int64_t{3} << 30,
                                    .capacity = 1000}};
  EXPECT_EQ(
      to_text(stage_table(rows, true)),
      "stage  layers           device  ms F / B     parameters  held    activations  in all\n"
      "0      conv1 .. layer2  cpu:0   14.1 / 298   683 K       2 of 8  40 MiB       43 MiB\n"
      "1      fc               cpu:1   1.23 / 0.00  10.5 M      1 of 8  1.5 KiB      3 GiB\n");
  EXPECT_EQ(stage_table(rows, false).heads[3], "% F / B");
  EXPECT_EQ(stage_table(rows, false).rows[0][3], "4.49 / 95.1");
  const nlohmann::json json = to_json(rows, true);
  EXPECT_EQ(json[0].at("bytes"), 43 << 20);
  EXPECT_FALSE(json[0].contains("fits"));
  EXPECT_EQ(json[1].at("fits"), false);
  EXPECT_EQ(count_in_words(999), "999");
  EXPECT_EQ(count_in_words(999'600), "1.00 M");
  EXPECT_EQ(bytes_in_words(1023), "1023 bytes");
}

}  // namespace
}  // namespace ringlet::train
