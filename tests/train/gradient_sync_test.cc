// The buckets: how they are cut, in which order they start, and that they start early.
#include "train/sync/gradient_sync.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/local/local_transport.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/meta_device.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::train {
namespace {

using std::chrono::microseconds;

ReplicaSpec lenet_spec() {
  ReplicaSpec spec;
  spec.recipe.model = "lenet";
  spec.max_train_batch = 16;
  return spec;
}

Execution execution_of(int ranks, bool overlap = true) {
  Execution execution;
  execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  execution.overlap = overlap;
  return execution;
}

/// Rank and element make a whole number, so that sums are exact.
float pattern(int rank, std::int64_t i) { return static_cast<float>((rank + 1) * (i % 1000 + 1)); }

void write_pattern(Device& device, const nn::Parameters& parameters, int rank, std::int64_t begin,
                   std::int64_t end) {
  std::vector<float> values;
  for (std::int64_t i = begin; i < end; ++i) values.push_back(pattern(rank, i));
  copy_from_host(device.compute(), values.data(), parameters.gradients().slice(begin, end));
}

void write_pattern(Device& device, const nn::Parameters& parameters, int rank) {
  write_pattern(device, parameters, rank, 0, parameters.gradients().count());
}

void expect_pattern_summed(Device& device, const nn::Parameters& parameters, int ranks) {
  std::vector<float> values(static_cast<std::size_t>(parameters.gradients().count()));
  copy_to_host(device.compute(), parameters.gradients(), values.data());
  float factor = 0;
  for (int rank = 0; rank < ranks; ++rank) factor += static_cast<float>(rank + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], factor * pattern(0, static_cast<std::int64_t>(i))) << "element " << i;
  }
}

/// Names of the collectives that a rank has entered, oldest first.
std::vector<std::string> collectives(comm::Communicator& communicator) {
  std::vector<std::string> names;
  for (const auto& record : communicator.transport().recorder().history()) {
    names.emplace_back(record.name.data());
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<Bucket>& buckets) {
  std::vector<std::string> names;
  for (const Bucket& bucket : buckets) names.push_back(bucket.name.substr(0, 63));
  return names;
}

TEST(Buckets, CoverTheArenaInOrder) {
  const auto device = open_device({});
  Replica replica(*device, lenet_spec());
  const nn::Plan& plan = replica.plan();
  for (const std::int64_t kb : {0, 1, 64, 1 << 20}) {
    const auto buckets = plan_buckets(plan, {{.bucket_kb = kb}});
    std::int64_t next = 0;
    int parameters = 0;
    for (const Bucket& bucket : buckets) {
      EXPECT_EQ(bucket.begin, next);
      next = bucket.end;
      parameters += bucket.parameters;
      if (&bucket != &buckets.back()) {
        EXPECT_GE((bucket.end - bucket.begin) * 4, kb * 1024);
      }
    }
    EXPECT_EQ(next, plan.elements + nn::Parameters::kStatistics);  // they ride in the last one
    EXPECT_EQ(parameters, static_cast<int>(plan.parameters.size()));
  }
  EXPECT_EQ(plan_buckets(plan, {{.bucket_kb = 0}}).size(), plan.parameters.size());
  EXPECT_EQ(plan_buckets(plan, {{.bucket_kb = 1 << 20}}).size(), 1u);
  EXPECT_NE(plan_buckets(plan, {{.bucket_kb = 0}})[0].name.find("fc2"),
            std::string::npos);  // final first
}

TEST(Buckets, TheFirstMayBeCutAnotherWay) {
  const auto device = open_device({});
  Replica replica(*device, lenet_spec());
  const nn::Plan& plan = replica.plan();
  const auto size = [](const Bucket& bucket) { return bucket.end - bucket.begin; };
  const auto alike = plan_buckets(plan, {{.bucket_kb = 64}});
  const auto sooner = plan_buckets(plan, {{.bucket_kb = 64, .first_bucket_kb = 0}});
  EXPECT_EQ(sooner[0].parameters, 1);
  EXPECT_LT(size(sooner[0]), size(alike[0]));
  EXPECT_GE(size(sooner[1]) * 4, 64 * 1024);
  const auto later = plan_buckets(plan, {{.bucket_kb = 0, .first_bucket_kb = 1 << 20}});
  EXPECT_EQ(later.size(), 1u);
  const auto narrow =
      plan_buckets(plan, {{.bucket_kb = 64, .first_bucket_kb = 0}, {.grad_dtype = DType::bf16}});
  ASSERT_EQ(narrow.size(), sooner.size() + 1);  // and the statistics; they are not the first
  for (std::size_t i = 0; i < sooner.size(); ++i) {
    EXPECT_EQ(narrow[i + 1].name, sooner[i].name);
  }
}

TEST(Buckets, AreOfTheSizesThatTheDeviceWants) {
  const auto sizes = [](DeviceKind device, std::int64_t all, std::int64_t first) {
    const SyncOptions found =
        with_bucket_sizes({{.bucket_kb = all, .first_bucket_kb = first}}, {.device = device});
    return std::pair(found.bucket_kb, found.first_bucket_kb);
  };
  EXPECT_EQ(sizes(DeviceKind::cpu, -1, -1), std::pair(1024L, -1L));
  EXPECT_EQ(sizes(DeviceKind::cpu, -1, 64), std::pair(1024L, 64L));
  EXPECT_EQ(sizes(DeviceKind::cuda, -1, -1), std::pair(25600L, 1024L));
  EXPECT_EQ(sizes(DeviceKind::cuda, -1, 64), std::pair(25600L, 64L));
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {  // what is given stays
    EXPECT_EQ(sizes(device, 0, -1), std::pair(0L, -1L));
    EXPECT_EQ(sizes(device, 64, 1), std::pair(64L, 1L));
  }
}

TEST(Buckets, AreSmallBetweenMachinesSoThatTheyTravelDuringBackward) {
  const auto size = [](std::int64_t gradient_kb, SyncOptions options = {},
                       DeviceKind device = DeviceKind::cpu) {
    return with_bucket_sizes(options, {.device = device,
                                       .is_between_machines = true,
                                       .gradient_bytes = gradient_kb * 1024})
        .bucket_kb;
  };
  EXPECT_EQ(size(504), 64);  // lenet-d2l
  EXPECT_EQ(size(1600), 200);
  EXPECT_EQ(size(44 * 1024), 1024);  // resnet18
  EXPECT_EQ(size(504, {{.overlap = false}}), 1024);
  EXPECT_EQ(size(504, {{.bucket_kb = 512}}), 512);
  EXPECT_EQ(size(504, {}, DeviceKind::cuda), 25600);
}

TEST(GradientSync, BucketsStartInIndexOrderWhateverTheOrderOfReadiness) {
  constexpr int kRanks = 3, kRounds = 5;
  run_replicas(
      execution_of(kRanks),
      [](Device& device, comm::Communicator& communicator) {
        Replica replica(device, lenet_spec());
        GradientSync sync(device, communicator, replica.parameters(), ShardTree(1), {{0, true}});
        const auto names = names_of(sync.buckets());
        auto order = replica.plan().parameters;
        const auto& parameters = replica.parameters().registry().parameters;
        std::mt19937 random(static_cast<unsigned>(communicator.rank()));
        std::vector<std::string> expected;
        for (int round = 0; round < kRounds; ++round) {
          write_pattern(device, replica.parameters(), communicator.rank());
          std::shuffle(order.begin(), order.end(), random);
          sync.begin_step();
          for (const nn::PlannedParameter& planned : order) {  // what is sent too early is wrong
            fill(device.compute(), -1,
                 replica.parameters().gradients().slice(planned.begin, planned.end));
          }
          for (const nn::PlannedParameter& planned : order) {
            std::this_thread::sleep_for(microseconds(random() % 500));
            write_pattern(device, replica.parameters(), communicator.rank(), planned.begin,
                          planned.end);
            sync.gradient_ready(*parameters.at(static_cast<std::size_t>(planned.id)));
          }
          sync.finish();
          expect_pattern_summed(device, replica.parameters(), kRanks);
          expected.insert(expected.end(), names.begin(), names.end());
        }
        EXPECT_EQ(collectives(communicator), expected);  // at most 64 are kept
      },
      nullptr);
}

TEST(GradientSync, WithoutOverlapNothingStartsBeforeTheEnd) {
  run_replicas(
      execution_of(2, false),
      [](Device& device, comm::Communicator& communicator) {
        Replica replica(device, lenet_spec());
        GradientSync sync(device, communicator, replica.parameters(), ShardTree(1), {{0, false}});
        write_pattern(device, replica.parameters(), communicator.rank());
        sync.begin_step();
        for (const auto& planned : replica.plan().parameters) {
          sync.gradient_ready(
              *replica.parameters().registry().parameters.at(static_cast<std::size_t>(planned.id)));
        }
        EXPECT_TRUE(collectives(communicator).empty());
        sync.finish();
        EXPECT_EQ(collectives(communicator), names_of(sync.buckets()));
        expect_pattern_summed(device, replica.parameters(), 2);
      },
      nullptr);
}

TEST(GradientSync, ABucketIsSummedWhileOtherGradientsAreStillMissing) {
  run_replicas(
      execution_of(2),
      [](Device& device, comm::Communicator& communicator) {
        Replica replica(device, lenet_spec());
        GradientSync sync(device, communicator, replica.parameters(), ShardTree(1), {{0, true}});
        const auto& parameters = replica.parameters().registry().parameters;
        write_pattern(device, replica.parameters(), communicator.rank());
        sync.begin_step();
        bool waited = false;
        for (const auto& planned : replica.plan().parameters) {
          sync.gradient_ready(*parameters.at(static_cast<std::size_t>(planned.id)));
          if (std::exchange(waited, true)) continue;
          device.communication().synchronize();  // without overlap: nothing would have happened
          const auto latest = communicator.transport().recorder().latest();
          EXPECT_TRUE(latest && !latest->inside() && latest->tag.sequence == 1);
        }
        sync.finish();
        expect_pattern_summed(device, replica.parameters(), 2);
      },
      nullptr);
}

/// Notes how its communication stream is waited for.
class NotingDevice : public MetaDevice {
 public:
  struct Noting : MetaStream {
    using MetaStream::MetaStream;
    void synchronize() override { ++synchronized; }
    void flush() override { ++flushed; }
    int synchronized = 0, flushed = 0;
  };
  Noting& communication() override { return communication_; }

 private:
  Noting communication_{*this, "communication"};
};

TEST(GradientSync, WaitsForLaunchesAndNotForTheDevice) {
  comm::LocalGroup group(2);
  comm::Communicator communicator(group.transport(0));
  NotingDevice device;
  Replica replica(device, lenet_spec());
  GradientSync sync(device, communicator, replica.parameters(), ShardTree(1), {{0, true}});
  const auto take_step = [&] {
    sync.begin_step();
    for (const nn::Parameter* parameter : replica.parameters().registry().parameters) {
      sync.gradient_ready(*parameter);
    }
    sync.finish();
  };
  take_step();
  EXPECT_EQ(device.communication().flushed, 1);
  EXPECT_EQ(device.communication().synchronized, 0);
  group.abort(1, "the other rank is gone");
  EXPECT_TRUE(testing::says(testing::message_of<comm::Aborted>(take_step),
                            {"rank 1", "the other rank is gone"}));
}

TEST(GradientSync, SaysWhenAGradientIsMissing) {
  run_replicas(
      execution_of(1),
      [](Device& device, comm::Communicator& communicator) {
        Replica replica(device, lenet_spec());
        GradientSync sync(device, communicator, replica.parameters(), ShardTree(1), {{0, true}});
        sync.begin_step();
        sync.gradient_ready(*replica.parameters().registry().parameters.back());
        EXPECT_THROW(sync.finish(), ContractError);
      },
      nullptr);
}

/// Steps of a traced training run in which bucket 0's collective began before backward had ended.
int steps_that_overlap(bool overlap) {
  TrainOptions options = plain_options(2);
  options.recipe.batch_size = 256;
  options.execution.bucket_kb = 0;
  options.execution.overlap = overlap;
  const RunSetup setup = make_run_setup(options, formula_splits(10 * 256), 2);
  int overlapping = 0;
  run_replicas(
      options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        Tracer compute, communication;
        device.compute().set_tracer(&compute);
        device.communication().set_tracer(&communication);
        TrainLoop loop(setup, device, communicator, {});
        loop.run();
        device.compute().set_tracer(nullptr);
        device.communication().set_tracer(nullptr);
        if (communicator.rank() != 0) return;
        std::vector<std::int64_t> ends, begins;  // by step
        for (const Span& span : compute.spans()) {
          if (std::string(span.name.data()).starts_with("backward conv1")) {
            ends.push_back(span.end_ns);
          }
        }
        for (const Span& span : communication.spans()) {
          if (std::string(span.name.data()).starts_with("bucket 0 ")) {
            begins.push_back(span.begin_ns);
          }
        }
        ASSERT_EQ(ends.size(), 10u);
        ASSERT_EQ(begins.size(), 10u);
        for (std::size_t i = 0; i < ends.size(); ++i) overlapping += begins[i] < ends[i] ? 1 : 0;
      },
      nullptr);
  return overlapping;
}

TEST(GradientSync, CollectivesBeginBeforeBackwardEnds) {
  EXPECT_GT(steps_that_overlap(true), 0);
  EXPECT_EQ(steps_that_overlap(false), 0);
}

}  // namespace
}  // namespace ringlet::train
