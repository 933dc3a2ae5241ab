// The steady state allocates nothing: neither on the devices nor with operator new, on no thread.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <new>
#include <span>
#include <string>

#include "tests/support/counting_new.h"
#include "tests/support/gpu.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

struct Case {
  std::string name;
  TrainOptions options;
  bool watched = false;  // somebody asks for the gradient's norm
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Case with(std::string name, TrainOptions options, LayoutChoice layout, bool overlap = true) {
  options.execution.layout = layout;
  options.execution.overlap = overlap;
  options.execution.bucket_kb = 16;
  options.recipe.batch_size = 66;
  return {std::move(name), options};
}

Case margin(std::string name, TrainOptions options) {
  options.recipe.loss = "arcface";
  options.recipe.scale = 16;
  options.recipe.embedding_size = 5;
  return with(std::move(name), std::move(options), LayoutChoice::nchw);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    const std::string suffix = layout == LayoutChoice::nchw ? "_nchw" : "_lanes";
    all.push_back(with("one" + suffix, plain_options(1), layout));
    all.push_back(with("ring" + suffix, plain_options(2, "ring"), layout));
    all.push_back(with("naive_in_place" + suffix, plain_options(2, "naive"), layout, false));
    all.push_back(with("exact" + suffix, exact_options(2), layout));
  }
  all.push_back(all[1]);
  all.back().name = "accumulate";
  all.back().options.recipe.accumulate = 2;
  all.push_back(all[1]);
  all.back().name = "bf16";
  all.back().options.recipe.grad_dtype = DType::bf16;
  for (const auto statistics : {BatchStatistics::shard, BatchStatistics::world}) {
    all.push_back(with(statistics == BatchStatistics::shard ? "norm" : "world_norm",
                       normed(plain_options(2)), LayoutChoice::lanes));
    all.back().options.recipe.batch_norm = statistics;
  }
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    all.push_back(with(layout == LayoutChoice::nchw ? "f16_nchw" : "f16_lanes",
                       normed(plain_options(2)), layout));
    all.back().options.recipe.precision = Precision::f16;
    all.back().options.execution.emulate_precision = true;
  }
  for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
    all.push_back(with(schedule == PipelineSchedule::gpipe ? "stages_gpipe" : "stages_1f1b",
                       normed(plain_options(4)), LayoutChoice::lanes));  // of two replicas
    all.back().options.execution.stages = "2";
    all.back().options.execution.pipeline = schedule;
    all.back().options.recipe.accumulate = 3;
    all.back().options.recipe.clip_norm = 1;
  }
  all.push_back(margin("margin", plain_options(2)));
  all.push_back(margin("margin_exact", exact_options(2)));
  all.push_back(all[1]);
  all.back().name = "watched";
  all.back().watched = true;
  return all;
}

/// On cuda:0. The libraries' own use of the host's memory is not ours to count.
std::vector<Case> cuda_cases() {
  std::vector<Case> all;
  for (const bool graph : {false, true}) {
    all.push_back(with(graph ? "graph" : "eager", plain_options(1), LayoutChoice::nchw));
    all.back().watched = true;
    all.back().options.execution.graph = graph;
  }
  all.push_back(with("nhwc", plain_options(1), LayoutChoice::nhwc));
  all.push_back(with("ring", plain_options(2, "ring"), LayoutChoice::nchw));
  all.push_back(with("exact", exact_options(2), LayoutChoice::nchw));
  all.push_back(margin("margin", plain_options(2)));
  for (Case& c : all) {
    for (DeviceId& device : c.options.execution.devices) device.kind = DeviceKind::cuda;
  }
  return all;
}

class Watcher : public RunListener {
 public:
  bool wants_grad_norm() const override { return true; }
};

class SteadyState : public ::testing::TestWithParam<Case> {};

TEST_P(SteadyState, AllocatesNothing) {
  constexpr int kWarmUp = 2, kMeasured = 8;
  TrainOptions options = GetParam().options;
  const bool cuda = options.execution.devices.front().kind == DeviceKind::cuda;
  if (cuda) SKIP_WITHOUT_GPU();
  const int ranks = static_cast<int>(options.execution.devices.size());
  const RunSetup setup = make_run_setup(options, formula_splits(66 * 12), ranks);
  std::barrier together(ranks);
  std::atomic<std::int64_t> device_allocations{0}, allocations{0};
  comm::LocalGroup group = threads_of(setup.options.execution);
  run_ranks(
      group, setup.options.execution,
      [&](Device& device, const Ranks& of_run) {
        Watcher watcher;
        RunListener* const listeners[] = {&watcher};
        TrainLoop loop(setup, device, of_run,
                       std::span(listeners).first(GetParam().watched ? 1 : 0));
        for (int step = 0; step < kWarmUp; ++step) loop.step();
        const std::int64_t before = device.allocations();
        together.arrive_and_wait();
        const std::int64_t calls_before = test::operator_new_calls();
        together.arrive_and_wait();
        for (int step = 0; step < kMeasured; ++step) loop.step();
        together.arrive_and_wait();
        allocations = test::operator_new_calls() - calls_before;
        device_allocations += device.allocations() - before;
        together.arrive_and_wait();
      },
      nullptr);
  if (!cuda) {
    EXPECT_EQ(allocations, 0) << "calls of operator new in " << kMeasured << " steps";
  }
  EXPECT_EQ(device_allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(Steps, SteadyState, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Cuda, SteadyState, ::testing::ValuesIn(cuda_cases()),
                         ::testing::PrintToStringParamName());

TEST(Counting, SeesAllocations) {
  constexpr std::align_val_t kWide{64};
  const std::int64_t before = test::operator_new_calls();
  ::operator delete(::operator new(8));
  ::operator delete[](::operator new[](8));
  ::operator delete(::operator new(8, kWide), kWide);
  EXPECT_EQ(test::operator_new_calls() - before, 3);
}

}  // namespace
}  // namespace ringlet::train
