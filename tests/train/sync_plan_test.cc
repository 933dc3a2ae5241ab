// What a run says of its synchronisation before and after: bytes, strategies, times.
#include "train/sync/sync_plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "comm/all_reduce/ring.h"
#include "comm/transport/local/local_transport.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/console.h"
#include "train/telemetry/run_record.h"

namespace ringlet::train {
namespace {

using testing::read_file;
using testing::TemporaryDirectory;

const std::vector<Bucket> kBuckets{
    {.end = 1000, .parameters = 1, .name = "bucket 0 (a)"},
    {.begin = 1000, .end = 5000, .parameters = 1, .name = "bucket 1 (b)", .dtype = DType::bf16}};

SyncPlan plan_of(const std::vector<MeasuredTime>& times, DeviceKind device = DeviceKind::cpu,
                 int ranks = 2) {
  comm::LocalGroup group(ranks);
  const comm::Communicator communicator(group.transport(0));
  return plan_sync(communicator, kBuckets, device, times);
}

TEST(SyncPlan, SaysBytesAndStrategiesByBucket) {
  const SyncPlan plan = plan_of({});
  ASSERT_EQ(plan.sums.size(), 2u);
  EXPECT_EQ(plan.sums[0].name, "bucket 0 (a)");
  EXPECT_EQ(plan.sums[0].bytes, 4000);
  EXPECT_EQ(plan.sums[1].bytes, 8000);
  EXPECT_EQ(plan.bytes(), 12000);
  EXPECT_EQ(plan.sums[1].strategy, "ring");
  EXPECT_TRUE(plan_of({}, DeviceKind::cpu, 1).sums.empty());
}

TEST(SyncPlan, TakesTheModelWhereNothingWasMeasured) {
  comm::LocalGroup group(2);
  const double expected = comm::predicted_seconds(comm::RingAllReduce::path_cost, 2, 4000,
                                                  group.transport(0).typical_costs());
  const std::vector<MeasuredTime> others{{3, "ring", 4000, 1}, {2, "tree", 4000, 1}};
  for (const auto& times : {std::vector<MeasuredTime>{}, others}) {
    const SyncPlan plan = plan_of(times);
    EXPECT_EQ(plan.source, PredictedFrom::model);
    EXPECT_DOUBLE_EQ(plan.sums[0].seconds, expected);
    EXPECT_DOUBLE_EQ(plan.seconds(), plan.sums[0].seconds + plan.sums[1].seconds);
    const SyncPlan on_gpu = plan_of(times, DeviceKind::cuda);
    EXPECT_EQ(on_gpu.source, PredictedFrom::nowhere);
    EXPECT_EQ(on_gpu.seconds(), 0);
  }
}

TEST(SyncPlan, ReadsOffWhatWasMeasured) {
  const auto seconds_of = [](const std::vector<MeasuredTime>& times) {
    const SyncPlan plan = plan_of(times);
    EXPECT_EQ(plan.source, PredictedFrom::tuning);
    return plan.sums[0].seconds;  // 4000 bytes
  };
  EXPECT_DOUBLE_EQ(seconds_of({{2, "ring", 4000, 7e-6}, {2, "ring", 1, 1}}), 7e-6);
  // Halfway, on logarithmic scales, from 1000 to 16000 bytes and from 2 to 8 us.
  EXPECT_NEAR(seconds_of({{2, "ring", 16000, 8e-6}, {2, "ring", 1000, 2e-6}}), 4e-6, 1e-12);
  EXPECT_DOUBLE_EQ(seconds_of({{2, "ring", 9000, 3e-6}}), 3e-6);  // no faster than the least
  EXPECT_DOUBLE_EQ(seconds_of({{2, "ring", 1000, 3e-6}}), 12e-6);
}

::testing::AssertionResult contains(const std::string& text,
                                    const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

/// What a run of two replicas wrote on a console, and in its run.json.
struct Told {
  std::string console;
  nlohmann::json record;
};

Told tell(const TrainOptions& options) {
  const TemporaryDirectory folder;  // no table of this machine's: the cache is empty
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);  // NOLINT: no other thread runs
  const int ranks = static_cast<int>(options.execution.devices.size());
  const RunSetup setup = make_run_setup(options, formula_splits(5 * 64), ranks);
  std::FILE* file = std::fopen((folder / "console").c_str(), "w");
  {
    Console console(file, false);
    RunRecord record(folder / "run.json", setup);
    run(setup, {&console, &record});
    console.finish();
  }
  std::fclose(file);
  return {read_file(folder / "console"), parse_json(read_file(folder / "run.json"))};
}

TEST(SyncPlan, IsToldAtTheStartAndWhatItTookAtTheEnd) {
  TrainOptions options = plain_options(2);
  options.execution.bucket_kb = 64;
  options.execution.first_bucket_kb = 1;
  options.recipe.grad_dtype = DType::bf16;
  const Told told = tell(options);
  EXPECT_TRUE(contains(told.console,
                       {"sync      ring all-reduce of 252 KiB as bf16 in 4 buckets, overlap on, ",
                        " ms a step by the cost model\n", "          statistics: 0.1 KiB by ring, ",
                        "          bucket 0 (fc2.weight): 2.5 KiB by ring, ", "sync took ",
                        "replica 0 waited ", " ms predicted, "}));
  const nlohmann::json& sync = told.record.at("sync");
  ASSERT_EQ(sync.at("buckets").size(), 5u);
  EXPECT_EQ(sync.at("steps"), 5);
  EXPECT_GT(sync.at("waited_seconds").get<double>(), 0);
  EXPECT_EQ(sync.at("buckets")[0].at("name"), "statistics");
  EXPECT_EQ(sync.at("buckets")[0].at("bytes"), 64);
  for (const nlohmann::json& bucket : sync.at("buckets")) {
    EXPECT_EQ(bucket.at("strategy"), "ring");
    EXPECT_GT(bucket.at("predicted_seconds").get<double>(), 0);
    EXPECT_GT(bucket.at("taken_seconds").get<double>(), 0);
    EXPECT_LT(bucket.at("taken_seconds").get<double>(), 60);
  }
}

TEST(SyncPlan, OneBucketHasNoLineOfItsOwnAndOneReplicaNoPlan) {
  const Told two = tell(plain_options(2)), one = tell(plain_options(1));
  EXPECT_TRUE(
      contains(two.console, {"in 1 bucket, overlap on, ", "by the cost model\n", "sync took "}));
  EXPECT_EQ(two.console.find("bucket 0"), std::string::npos);
  EXPECT_TRUE(contains(one.console, {"nothing to synchronise"}));
  EXPECT_EQ(one.console.find("cost model"), std::string::npos);
  EXPECT_EQ(one.console.find("sync took"), std::string::npos);
  EXPECT_FALSE(one.record.contains("sync"));
}

}  // namespace
}  // namespace ringlet::train
