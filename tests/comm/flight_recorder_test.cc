#include "comm/core/flight_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/hash.h"
#include "comm/core/rank_text.h"

namespace ringlet::comm {
namespace {

TEST(FlightRecorder, NumbersAndKeepsTheLatest) {
  FlightRecorder recorder;
  EXPECT_FALSE(recorder.latest());
  EXPECT_EQ(recorder.current(), CollectiveTag{});
  const int many = static_cast<int>(FlightRecorder::kRecords) + 10;
  for (int i = 1; i <= many; ++i) {
    recorder.enter(CollectiveKind::all_reduce, i, "bucket " + std::to_string(i));
    EXPECT_EQ(recorder.current(), (CollectiveTag{i, i, CollectiveKind::all_reduce}));
    EXPECT_TRUE(recorder.latest()->inside());
    recorder.leave();
    EXPECT_FALSE(recorder.latest()->inside());
  }
  const auto history = recorder.history();
  ASSERT_EQ(history.size(), FlightRecorder::kRecords);
  EXPECT_EQ(history.front().tag.sequence, 11);
  EXPECT_EQ(describe(history.back()), "#74 all_reduce bucket 74");
  EXPECT_LE(history.back().entered_ns, history.back().left_ns);
}

TEST(FlightRecorder, CutsLongNames) {
  FlightRecorder recorder;
  recorder.enter(CollectiveKind::broadcast, 0, std::string(500, 'x'));
  EXPECT_EQ(describe(*recorder.latest()), "#1 broadcast " + std::string(63, 'x'));
  recorder.enter(CollectiveKind::barrier, 0, "");
  EXPECT_EQ(describe(*recorder.latest()), "#2 barrier");
}

TEST(FlightRecorder, KnowsWhatMessagesAreOutsideOfCollectives) {
  FlightRecorder recorder;
  {
    const FlightRecorder::Moving moving(recorder, {CollectiveKind::activation, 3},
                                        {CollectiveKind::gradient, 1});
    EXPECT_EQ(recorder.outgoing(),
              (CollectiveTag{.sequence = 4, .bytes = 0, .kind = CollectiveKind::activation}));
    EXPECT_EQ(recorder.incoming(),
              (CollectiveTag{.sequence = 2, .bytes = 0, .kind = CollectiveKind::gradient}));
    const FlightRecorder::Exchanging exchanging(recorder, {.to = 1, .from = 1});
    EXPECT_EQ(describe(recorder.exchange()->out), "activation of micro-batch 3");
    EXPECT_EQ(describe(recorder.exchange()->in), "gradient of micro-batch 1");
  }
  const FlightRecorder::Exchanging exchanging(recorder, {.to = 1, .from = 1});
  EXPECT_FALSE(recorder.exchange()->out.is_some());
  recorder.enter(CollectiveKind::barrier, 5, "");
  EXPECT_EQ(recorder.outgoing(), recorder.current());
  EXPECT_EQ(recorder.incoming(), recorder.current());
}

TEST(FlightRecorder, IsReadWholeWhileItIsWritten) {
  FlightRecorder recorder;
  const auto name_of_call = [](std::int64_t sequence) {
    return std::string(static_cast<std::size_t>(sequence % 3) * 20, 'x') + std::to_string(sequence);
  };
  recorder.enter(CollectiveKind::reduce, 1, name_of_call(1));
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends) {
      const CollectiveRecord record = *recorder.latest();
      const std::int64_t sequence = record.tag.sequence;
      EXPECT_EQ(record.tag.bytes, sequence);
      ASSERT_EQ(record.name.data(), name_of_call(sequence));
    }
  });
  for (std::int64_t i = 2; i <= 200'000; ++i) {
    recorder.leave();
    recorder.enter(CollectiveKind::reduce, i, name_of_call(i));
  }
  ends = true;
  reader.join();
}

TEST(FlightRecorder, KnowsTheActivity) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.activity().what, nullptr);
  recorder.set_activity("forward");
  EXPECT_STREQ(recorder.activity().what, "forward");
  EXPECT_GT(recorder.activity().since_ns, 0);
}

TEST(RankText, ReadsAsASentence) {
  EXPECT_EQ(text_of(std::vector<int>{2}), "rank 2");
  EXPECT_EQ(text_of(std::vector<int>{0, 3}), "ranks 0 and 3");
  EXPECT_EQ(text_of(std::vector<int>{0, 1, 3}), "ranks 0, 1 and 3");
  EXPECT_EQ(text_of_values({"a", "b", "a"}), "ranks 0 and 2 have a, rank 1 has b");
}

}  // namespace
}  // namespace ringlet::comm
