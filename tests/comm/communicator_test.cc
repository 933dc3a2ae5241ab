#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

TEST(Communicator, SumsOnAQueueAndInPlace) {
  for (const bool overlap : {false, true}) {
    LocalGroup group(3);
    run_ranks(3, [&](int rank) {
      const auto device = open_device({}, {.threads = 1, .overlap = overlap});
      Communicator communicator(group.transport(rank), {.strategy = "ring"});
      std::vector<float> first(1000, 1.0F + rank), second(10, 10.0F);
      communicator.all_reduce(device->communication(), view_of(first), "bucket 0");
      communicator.all_reduce(device->communication(), view_of(second), "bucket 1");
      device->communication().synchronize();
      EXPECT_EQ(first, std::vector<float>(1000, 6.0F));
      EXPECT_EQ(second, std::vector<float>(10, 30.0F));
    });
  }
}

TEST(Communicator, SumsEveryStoredElementOfAnyLayout) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(group.transport(rank));
    std::vector<float> data(32, 1.0F);
    const View lanes(data.data(), {3, 2}, DType::f32, Layout::lanes);
    communicator.all_reduce(device->communication(), lanes, "activations");
    EXPECT_EQ(data, std::vector<float>(32, 2.0F));
  });
}

TEST(Communicator, RefusesBytesAndUnknownStrategies) {
  LocalGroup group(1);
  const auto device = in_place_device();
  Communicator communicator(group.transport(0));
  std::uint8_t byte = 1;
  EXPECT_THROW(communicator.all_reduce(device->communication(), View(&byte, {1}, DType::u8), ""),
               ContractError);
  EXPECT_THROW(Communicator(group.transport(0), {.strategy = "star"}), ContractError);
}

TEST(Communicator, BroadcastsAndGathersAnyType) {
  LocalGroup group(4);
  run_ranks(4, [&](int rank) {
    const auto device = open_device({});
    Stream& stream = device->communication();
    Communicator communicator(group.transport(rank));
    std::int32_t mine = rank, all[4] = {};
    communicator.all_gather(stream, View(&mine, {1}, DType::i32), View(all, {4}, DType::i32), "n");
    std::uint8_t bytes[3] = {static_cast<std::uint8_t>(rank), 1, 2};
    communicator.broadcast(stream, 3, View(bytes, {3}, DType::u8), "seed");
    stream.synchronize();
    for (int other = 0; other < 4; ++other) EXPECT_EQ(all[other], other);
    EXPECT_EQ(bytes[0], 3);
    EXPECT_EQ(
        communicator.gather_text(stream, std::string(static_cast<std::size_t>(rank), 'x'), ""),
        (std::vector<std::string>{"", "x", "xx", "xxx"}));
  });
}

TEST(Communicator, ComparesPlansAndNamesWhatDiffers) {
  const Plan plan{{"model", "lenet"}, {"fc1.weight", "f32 [500, 800]"}, {"global batch", "64"}};
  const auto compare = [](const std::vector<Plan>& plans) {
    const int size = static_cast<int>(plans.size());
    LocalGroup group(size);
    return messages_of_ranks(size, [&](int rank) {
      const auto device = open_device({});
      Communicator communicator(group.transport(rank));
      communicator.require_equal(device->communication(), plans[static_cast<std::size_t>(rank)]);
    });
  };
  const std::string remedy = "; start every process with the same program, flags and data";
  EXPECT_EQ(compare({plan, plan, plan}), std::vector<std::string>(3));
  Plan other = plan;
  other[2].second = "128";
  EXPECT_EQ(compare({plan, plan, other, plan}),
            std::vector<std::string>(4,
                                     "the ranks' plans differ in \"global batch\": ranks 0, 1 and "
                                     "3 have 64, rank 2 has 128" +
                                         remedy));
  other = plan;
  other[1].first = "fc1.weights";
  EXPECT_EQ(compare({plan, other}),
            std::vector<std::string>(2,
                                     "the ranks' plans differ in entry 2: rank 0 has "
                                     "\"fc1.weight\", rank 1 has \"fc1.weights\"" +
                                         remedy));
  other = plan;
  other.pop_back();
  EXPECT_EQ(compare({plan, other}),
            std::vector<std::string>(2,
                                     "the ranks' plans differ in entry 3: rank 0 has \"global "
                                     "batch\", rank 1 has no such entry" +
                                         remedy));
}

TEST(Communicator, FindsAReplicaThatHasDrifted) {
  LocalGroup group(4);
  const auto messages = messages_of_ranks(4, [&](int rank) {
    const auto device = open_device({});
    Communicator communicator(group.transport(rank));
    std::vector<float> weights(1003, 0.25F);
    communicator.require_identical(device->communication(), view_of(weights), "parameters");
    if (rank == 2) weights[1002] = std::nextafter(0.25F, 1.0F);
    communicator.require_identical(device->communication(), view_of(weights), "parameters");
  });
  for (const std::string& message : messages) {
    EXPECT_TRUE(contains(message, "the replicas' parameters differ")) << message;
    EXPECT_TRUE(contains(message, "ranks 0, 1 and 3 have ")) << message;
    EXPECT_TRUE(contains(message, "rank 2 has ")) << message;
  }
}

TEST(Communicator, SaysWhichRankNeverCameAndWhatItDidLast) {
  LocalGroup group(4);
  const auto messages = messages_of_ranks(4, [&](int rank) {
    const auto device = open_device({});
    Stream& stream = device->communication();
    Communicator communicator(group.transport(rank), {.timeout_seconds = 0.3});
    std::vector<float> data(100);
    communicator.all_reduce(stream, view_of(data), "bucket 2");
    stream.synchronize();
    if (rank == 2) {
      communicator.set_activity("data loading");
      return;
    }
    communicator.all_reduce(stream, view_of(data), "bucket 3 (fc1.weight)");
    stream.synchronize();
  });
  ASSERT_TRUE(group.root_cause());
  const std::string cause = group.root_cause()->message;
  EXPECT_EQ(cause.substr(0, cause.find(" 0.")),
            "rank 2 never entered #2 all_reduce bucket 3 (fc1.weight), 400 bytes; rank 2 was last "
            "seen in \"data loading\"");
  EXPECT_TRUE(contains(cause, "after #1 all_reduce bucket 2")) << cause;
  EXPECT_TRUE(contains(cause, "; ranks 0, 1 and 3 wait in #2")) << cause;
  EXPECT_EQ(messages[2], "");
  for (const int rank : {0, 1, 3}) {
    EXPECT_TRUE(contains(messages[static_cast<std::size_t>(rank)], cause));
  }
  EXPECT_EQ(std::count(messages.begin(), messages.end(), cause), 1);  // one root cause, two Aborted
}

/// The root cause when ranks 0 and 1 each start a collective of their own.
template <class First, class Second>
std::string cause_of(First first, Second second) {
  LocalGroup group(2);
  messages_of_ranks(2, [&](int rank) {
    const auto device = open_device({});
    Communicator communicator(group.transport(rank), {.strategy = "naive", .timeout_seconds = 20});
    std::vector<float> data(2000);
    communicator.barrier(device->communication(), "start");
    rank == 0 ? first(communicator, device->communication(), view_of(data))
              : second(communicator, device->communication(), view_of(data));
    device->communication().synchronize();
  });
  return group.root_cause() ? group.root_cause()->message : "";
}

TEST(Communicator, NamesCollectivesThatDoNotMatch) {
  const auto reduce = [](Communicator& communicator, Stream& stream, View data) {
    communicator.all_reduce(stream, data.slice(0, 25), "bucket 0");
  };
  const auto reduce_less = [](Communicator& communicator, Stream& stream, View data) {
    communicator.all_reduce(stream, data.slice(0, 24), "bucket 1");
  };
  const auto broadcast_from = [](int root, std::int64_t count) {
    return [root, count](Communicator& communicator, Stream& stream, View data) {
      communicator.broadcast(stream, root, data.slice(0, count), "weights");
    };
  };
  std::string cause = cause_of(reduce, reduce_less);
  EXPECT_TRUE(contains(cause, "#2 all_reduce bucket 0, 100 bytes")) << cause;
  EXPECT_TRUE(contains(cause, "#2 all_reduce bucket 1, 96 bytes")) << cause;
  cause = cause_of(reduce, broadcast_from(1, 2000));  // both by messages
  EXPECT_TRUE(contains(
      cause,
      "rank 1 sends 8000 bytes in #2 broadcast weights, 8000 bytes, root 1, but rank 0 expects "
      "100 bytes in #2 all_reduce bucket 0, 100 bytes"))
      << cause;
  cause = cause_of(reduce, broadcast_from(1, 25));  // a message, and a meeting
  EXPECT_TRUE(contains(cause, " in #2 all_reduce bucket 0, 100 bytes")) << cause;
  EXPECT_TRUE(contains(cause, " in #2 broadcast weights, 100 bytes, root 1")) << cause;
  cause = cause_of(broadcast_from(0, 900), broadcast_from(1, 1000));  // both send, nobody receives
  EXPECT_TRUE(contains(cause, "#2 broadcast weights, 3600 bytes")) << cause;
  EXPECT_TRUE(contains(cause, "#2 broadcast weights, 4000 bytes")) << cause;
  cause = cause_of(broadcast_from(0, 4), broadcast_from(0, 2000));  // a meeting, and a message
  EXPECT_TRUE(contains(cause, " in #2 broadcast weights, 16 bytes, root 0")) << cause;
  EXPECT_TRUE(contains(cause, " in #2 broadcast weights, 8000 bytes, root 0")) << cause;
  for (const std::int64_t count : {1, 25, 2000}) {  // both send, nobody receives
    cause = cause_of(broadcast_from(0, count), broadcast_from(1, count));
    EXPECT_TRUE(contains(cause, " in #2 broadcast weights, ")) << cause;
    EXPECT_TRUE(contains(cause, ", root 0")) << cause;
    EXPECT_TRUE(contains(cause, ", root 1")) << cause;
  }
}

TEST(Communicator, RunsBesideOthersOfTheSameRanks) {
  LocalGroup gradients(3), statistics(3);
  run_ranks(3, [&](int rank) {
    const auto device = open_device({});
    Communicator on_queue(gradients.transport(rank), {.strategy = "ring"});
    Communicator in_place(statistics.transport(rank), {.strategy = "doubling"});
    for (int round = 0; round < 200; ++round) {
      std::vector<float> gradient(100, 1.0F), statistic(3, 2.0F);
      on_queue.all_reduce(device->communication(), view_of(gradient), "gradient");
      in_place.all_reduce(device->compute(), view_of(statistic), "statistic");
      device->communication().synchronize();
      ASSERT_EQ(gradient[99], 3.0F);
      ASSERT_EQ(statistic[2], 6.0F);
    }
  });
}

TEST(Communicator, StandsManySmallCollectivesBackToBack) {
  for (const auto& [size, rounds] : {std::pair{2, 10000}, std::pair{4, 1000}, std::pair{8, 200}}) {
    LocalGroup group(size);
    run_ranks(size, [&, rounds = rounds, p = size](int rank) {
      const auto device = open_device({});
      Communicator communicator(group.transport(rank), {.strategy = "doubling"});
      std::vector<float> data(8, 1.0F);
      for (int round = 0; round < rounds; ++round) {
        device->communication().run([&data] { std::fill(data.begin(), data.end(), 1.0F); });
        communicator.all_reduce(device->communication(), view_of(data), "small");
      }
      device->communication().synchronize();
      EXPECT_EQ(data, std::vector<float>(8, static_cast<float>(p)));
      EXPECT_EQ(group.transport(rank).recorder().latest()->tag.sequence, rounds);
    });
  }
}

TEST(Communicator, TracesEachCollectiveAroundItsExchangesAndSums) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = open_device({});
    Tracer tracer;
    device->communication().set_tracer(&tracer);
    Communicator communicator(group.transport(rank), {.strategy = "ring"});
    std::vector<float> data(100);
    communicator.all_reduce(device->communication(), view_of(data), "bucket 7");
    device->communication().synchronize();
    ASSERT_EQ(tracer.spans().size(), 4U);
    const Span& sum = tracer.spans()[0];
    EXPECT_STREQ(sum.name.data(), "reduce");
    EXPECT_STREQ(sum.category, "kernel");
    const Span& whole = tracer.spans()[3];
    EXPECT_STREQ(whole.name.data(), "bucket 7");
    EXPECT_STREQ(whole.category, "collective");
    EXPECT_EQ(whole.bytes, 400);
    for (const Span& exchange : {tracer.spans()[1], tracer.spans()[2]}) {
      EXPECT_STREQ(exchange.category, "exchange");
      EXPECT_GE(exchange.begin_ns, whole.begin_ns);
      EXPECT_LE(exchange.end_ns, whole.end_ns);
    }
  });
}

}  // namespace
}  // namespace ringlet::comm
