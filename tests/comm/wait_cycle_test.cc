// Ranks that wait for each other in a circle: found among what is known of them, and told by a
// time-out over each transport.
#include "comm/report/wait_cycle.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kSecond;

/// A rank that has been in its exchange for `seconds` when it was looked at.
std::optional<RankStatus> rank_in(int to, int from, std::int64_t seconds = 10) {
  RankStatus status;
  status.exchange = ExchangeRecord{to, from, 40, 80, kNow - seconds * kSecond};
  status.seen_ns = kNow;
  return status;
}
std::optional<RankStatus> sends_to(int to) { return rank_in(to, kNobody); }
std::optional<RankStatus> takes_from(int from) { return rank_in(kNobody, from); }
std::optional<RankStatus> elsewhere() { return RankStatus(); }

std::string circle_of(const StatusOfRanks& status, int rank) {
  return find_wait_cycle(status, rank, kSecond);
}

TEST(WaitCycle, BeginsWithItsSmallestRank) {
  const StatusOfRanks ring{sends_to(1), sends_to(2), sends_to(3), sends_to(0)};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(circle_of(ring, rank), "0 -> 1 -> 2 -> 3 -> 0: all send, none receives");
  }
  const StatusOfRanks back{takes_from(2), takes_from(0), takes_from(1)};
  EXPECT_EQ(circle_of(back, 1), "0 -> 2 -> 1 -> 0: all receive, none sends");
  const StatusOfRanks mixed{sends_to(1), takes_from(2), sends_to(0)};
  EXPECT_EQ(circle_of(mixed, 2), "0 -> 1 -> 2 -> 0: each waits for the next");
}

TEST(WaitCycle, IsFoundByThoseWhoWaitForIt) {
  const StatusOfRanks two{sends_to(1), sends_to(0), takes_from(3), takes_from(1)};
  EXPECT_EQ(circle_of(two, 2), "0 -> 1 -> 0: all send, none receives");
  // One way leads nowhere, the other one into the circle.
  const StatusOfRanks fork{rank_in(3, 1), sends_to(2), sends_to(1), elsewhere()};
  EXPECT_EQ(circle_of(fork, 0), "1 -> 2 -> 1: all send, none receives");
}

TEST(WaitCycle, IsNoneWhereSomebodyCanGoOn) {
  const StatusOfRanks ring{rank_in(1, 2), rank_in(2, 0), rank_in(0, 1)};
  EXPECT_EQ(circle_of(ring, 0), "") << "each meets its other half";
  EXPECT_EQ(circle_of({sends_to(1), takes_from(0)}, 0), "");
  EXPECT_EQ(circle_of({sends_to(1), sends_to(2), elsewhere()}, 0), "") << "rank 2 may come yet";
  EXPECT_EQ(circle_of({sends_to(1), sends_to(2), std::nullopt}, 0), "");
  EXPECT_EQ(circle_of({elsewhere(), sends_to(0)}, 0), "");
}

TEST(WaitCycle, IsNotClosedByWhatNobodyWaitsFor) {
  // A gather of which rank 2's part is missing: rank 1 is a step ahead of rank 0, and what either
  // sends to the other has left.
  StatusOfRanks gather{rank_in(1, 2), rank_in(0, 2), std::nullopt};
  EXPECT_EQ(circle_of(gather, 0), "0 -> 1 -> 0: all send, none receives");
  for (const std::size_t rank : {0U, 1U}) gather[rank]->exchange->waiting = Waiting::to_receive;
  EXPECT_EQ(circle_of(gather, 0), "");
  EXPECT_EQ(circle_of(gather, 1), "");
  EXPECT_EQ(text_of_exchanges(gather),
            "; rank 0 receives 80 bytes from rank 2; rank 1 receives 80 bytes from rank 2; nothing "
            "is known of rank 2");
}

TEST(WaitCycle, MustHaveLasted) {
  EXPECT_EQ(circle_of({sends_to(1), rank_in(0, kNobody, 0)}, 0), "") << "rank 1 has just come";
  StatusOfRanks status{sends_to(1), sends_to(0)};
  status[1]->seen_ns = status[0]->exchange->entered_ns;
  EXPECT_EQ(circle_of(status, 0), "") << "rank 1 was seen when rank 0 came";
}

TEST(WaitCycle, ExchangesReadAsASentence) {
  EXPECT_EQ(text_of_exchanges({sends_to(1), rank_in(2, 0), takes_from(1), elsewhere(), std::nullopt,
                               elsewhere()}),
            "; rank 0 sends 40 bytes to rank 1; rank 1 sends 40 bytes to rank 2 and receives 80 "
            "bytes from rank 0; rank 2 receives 80 bytes from rank 1; ranks 3 and 5 are in no "
            "exchange; nothing is known of rank 4");
  EXPECT_EQ(text_of_exchanges({elsewhere(), elsewhere()}), "") << "they meet otherwise";
}

TEST(FlightRecorder, KnowsTheExchangeThatItsRankIsIn) {
  FlightRecorder recorder;
  EXPECT_FALSE(recorder.exchange());
  {
    const FlightRecorder::Exchanging exchanging(recorder, {3, 1, 400, 200});
    ASSERT_TRUE(recorder.exchange());
    EXPECT_EQ(recorder.exchange()->to, 3);
    EXPECT_EQ(recorder.exchange()->from, 1);
    EXPECT_EQ(recorder.exchange()->out_bytes, 400);
    EXPECT_EQ(recorder.exchange()->in_bytes, 200);
    EXPECT_GT(recorder.exchange()->entered_ns, 0);
    EXPECT_TRUE(recorder.exchange()->waits_to_send() && recorder.exchange()->waits_to_receive());
    recorder.set_waiting(Waiting::to_receive);
    EXPECT_FALSE(recorder.exchange()->waits_to_send());
    EXPECT_TRUE(recorder.exchange()->waits_to_receive());
  }
  {
    const FlightRecorder::Exchanging exchanging(recorder, {2, kNobody});
    EXPECT_TRUE(recorder.exchange()->waits_to_send()) << "the former exchange is forgotten";
    EXPECT_FALSE(recorder.exchange()->waits_to_receive());
  }
  EXPECT_FALSE(recorder.exchange());
}

constexpr int kRanks = 4;
constexpr std::size_t kLong = 200'000;  // more than the channels of shared memory hold
constexpr double kTimeout = 2;          // seconds

/// The only root cause among what the ranks threw.
std::string root_of(const std::vector<std::string>& messages) {
  std::string root;
  for (const std::string& message : messages) {
    if (!contains(message, "stopped, because")) root += message;
  }
  return root;
}

/// What a ring says in which all ranks send before they receive.
std::string root_of_sending_ring(const std::function<Transport&(int rank)>& transport_of) {
  return root_of(messages_of_ranks(kRanks, [&](int rank) {
    const auto device = in_place_device();
    Transport& transport = transport_of(rank);
    transport.set_timeout(kTimeout);
    std::vector<float> data(kLong);
    transport.send(device->communication(), (rank + 1) % kRanks, view_of(data));
    transport.receive(device->communication(), (rank + kRanks - 1) % kRanks, view_of(data));
  }));
}

void expect_ring(const std::string& message) {
  EXPECT_TRUE(contains(message,
                       "; ranks wait in a circle, 0 -> 1 -> 2 -> 3 -> 0: all send, none "
                       "receives; rank 0 sends 800000 bytes to rank 1; rank 1 sends "))
      << message;
  EXPECT_TRUE(contains(message, " waited 2 s in an exchange with rank ")) << message;
  EXPECT_FALSE(contains(message, "did not come")) << message;
}

TEST(TimeOut, TellsTheCircleOfThreads) {
  LocalGroup group(kRanks);
  expect_ring(root_of_sending_ring([&](int rank) -> Transport& { return group.transport(rank); }));
}

class TimeOutOfProcesses : public testing::TestWithParam<ProcessTransport> {
 protected:
  void SetUp() override { skip_without(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, TimeOutOfProcesses,
                         testing::Values(ProcessTransport::shm, ProcessTransport::gloo),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(TimeOutOfProcesses, TellsTheCircle) {
  Processes world({kRanks, 1, GetParam()});
  expect_ring(root_of_sending_ring([&](int rank) -> Transport& { return world.transport(rank); }));
}

TEST_P(TimeOutOfProcesses, TellsEveryRanksExchange) {
  Processes world({3, 1, GetParam()});
  const std::string root = root_of(messages_of_ranks(3, [&](int rank) {
    if (rank == 2) return;
    const auto device = in_place_device();
    world.transport(rank).set_timeout(0.3);
    std::vector<float> data(10);
    world.transport(rank).receive(device->communication(), rank + 1, view_of(data));
  }));
  EXPECT_TRUE(contains(root,
                       "; rank 0 receives 40 bytes from rank 1; rank 1 receives 40 bytes "
                       "from rank 2; rank 2 is in no exchange; look for"))
      << root;
}

TEST(TimeOut, TellsTheCircleInACollective) {
  LocalGroup group(3);
  const std::string root = root_of(messages_of_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Transport& transport = group.transport(rank);
    transport.set_timeout(kTimeout);
    transport.recorder().enter(CollectiveKind::all_reduce, 4000, "bucket 0");
    std::vector<float> data(1000);
    transport.send(device->communication(), (rank + 1) % 3, view_of(data));
  }));
  EXPECT_TRUE(contains(root,
                       " in #1 all_reduce bucket 0, 4000 bytes; ranks 0, 1 and 2 wait in #1; ranks "
                       "wait in a circle, 0 -> 1 -> 2 -> 0: all send, none receives; "))
      << root;
}

}  // namespace
}  // namespace ringlet::comm
