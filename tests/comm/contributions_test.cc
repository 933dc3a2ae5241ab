// Contributions and races: every strategy leaves everybody's numbers once everywhere and touches no
// memory at the wrong time; small wrong ones do not.
#include "comm/schedule/contributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/all_reduce/collectives.h"
#include "comm/all_reduce/parts.h"
#include "comm/schedule/races.h"
#include "comm/schedule/recording.h"
#include "kernels/memory.h"
#include "tests/comm/written.h"

namespace ringlet::comm {
namespace {

Schedule schedule_of(int ranks, const Body& body, int runs = 1) {
  return record_written(ranks, body, {.count = 8, .runs = runs, .addresses = true});
}

/// `counts` everywhere in the data of each rank.
void expect_everywhere(const std::vector<Parts>& of_ranks, const Counts& counts, std::int64_t bytes,
                       const std::string& what) {
  for (const Parts& parts : of_ranks) {
    std::int64_t end = 0;
    for (const Part& part : parts) {
      EXPECT_EQ(part.begin, end) << what;
      EXPECT_EQ(part.counts, counts) << what << ", bytes " << part.begin << " to " << part.end;
      end = part.end;
    }
    EXPECT_EQ(end, bytes) << what;
  }
}

TEST(Contributions, AreOneOfEachRankEverywhereAfterEveryStrategy) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (const auto& [machines, each] :
         {std::pair{1, 1}, {1, 2}, {1, 3}, {1, 6}, {1, 8}, {2, 2}, {3, 2}, {4, 4}}) {
      const Network network = equal_machines(machines, each, kEthernetCosts, kEthernetCosts);
      if (!why_not_recorded(strategy, network).empty()) continue;
      for (const std::int64_t count : {0, 1, 7, 3000}) {
        for (const std::int64_t window : {0, 4096}) {
          const Recording what{.count = count, .addresses = true, .window_bytes = window};
          const Schedule schedule = record(strategy.make, network, what);
          expect_everywhere(contributions_of(schedule),
                            Counts(static_cast<std::size_t>(network.ranks), 1), 4 * count,
                            std::string(strategy.name) + " of " + std::to_string(count));
        }
      }
    }
  }
}

TEST(Contributions, GrowByOneRankWithEachStepOfARing) {
  constexpr int kRanks = 4;
  const Schedule ring = record(Strategies().find("ring")->make, one_machine(kRanks, {}),
                               {.count = 8, .addresses = true});
  int changes = 0;
  contributions_of(ring, [&](const Change& change) {
    ++changes;
    EXPECT_EQ(change.owner, change.rank);
    ASSERT_EQ(change.parts.size(), 1U);
    int ranks = 0;
    for (const int count : change.parts[0].counts) ranks += count;
    const int step = static_cast<int>(change.step);  // the first is the program's
    EXPECT_EQ(ranks, std::min(step + 1, kRanks));
  });
  EXPECT_EQ(changes, 2 * (kRanks - 1) * kRanks);
}

TEST(Contributions, CountWhatIsAddedTwice) {
  const Schedule twice = schedule_of(2, [](Transport& transport, Stream& stream, const View& data) {
    const int other = 1 - transport.rank();
    for (int time = 0; time < 2; ++time) {
      transport.exchange(stream, other, data, other, data, Combine::add);
    }
  });
  expect_everywhere(contributions_of(twice), {2, 2}, 32, "doubling once too often");
}

TEST(Contributions, FollowWhatIsKeptElsewhere) {
  const Schedule rotated =
      schedule_of(2, [](Transport& transport, Stream& stream, const View& data) {
        const int other = 1 - transport.rank();
        const Buffer scratch(stream.device(), 16);
        const View half(scratch.data(), {4}, DType::f32);
        // The lower half of each comes by way of scratch memory to the other one's upper half.
        transport.exchange(stream, other, data.slice(0, 4), other, half);
        transport.exchange(stream, other, half, other, data.slice(4, 8), Combine::add);
      });
  const std::vector<Parts> parts = contributions_of(rotated);
  EXPECT_EQ(parts[0], (Parts{{0, 16, {1, 0}}, {16, 32, {2, 0}}}));
  EXPECT_EQ(parts[1], (Parts{{0, 16, {0, 1}}, {16, 32, {0, 2}}}));
}

TEST(Contributions, AreOneOfEachRankAfterALongReductionToOneAndItsBroadcast) {
  constexpr std::int64_t kCount = 6000, kBytes = 4 * kCount;
  const Body body = [](Transport& transport, Stream& stream, const View& data) {
    reduce(transport, stream, 1, data, ReduceOp::sum);
    broadcast(transport, stream, 1, data);
  };
  for (const int ranks : {2, 3, 5}) {
    const Schedule schedule = record_written(ranks, body, {.count = kCount, .addresses = true});
    expect_everywhere(contributions_of(schedule), Counts(static_cast<std::size_t>(ranks), 1),
                      kBytes, std::to_string(ranks));
    const auto race = find_race(schedule);
    EXPECT_FALSE(race) << race->text;
    const Totals totals = totals_of(schedule);
    EXPECT_EQ(totals.messages, 0);
    // Each rank but the root writes its part of the reduction into another's memory.
    const std::int64_t blocks = (kCount + 31) / 32;  // of 128 bytes, which are not shared out
    const std::int64_t roots =
        std::min(32 * part_begin(blocks, ranks, 2), kCount) - 32 * part_begin(blocks, ranks, 1);
    EXPECT_EQ(totals.bytes, 2 * (ranks - 1) * kBytes + kBytes - 4 * roots);
  }
}

TEST(Contributions, BeginAnewWithEachRun) {
  for (const char* strategy : {"ring", "one-shot"}) {
    const Schedule thrice = record(Strategies().find(strategy)->make, one_machine(3, {}),
                                   {.count = 8, .runs = 3, .addresses = true});
    expect_everywhere(contributions_of(thrice), {1, 1, 1}, 32, strategy);
  }
}

/// Rank 0 hurries to the next meeting while rank 1 still reads what was shown at the first.
TEST(Contributions, AreOfWhatWasShownAtTheLatestMeeting) {
  const Schedule schedule =
      schedule_of(2, [](Transport& transport, Stream& stream, const View& data) {
        PeerAccess& peers = *transport.peer_access();
        const View lower = data.slice(0, 4), upper = data.slice(4, 8);
        peers.open(stream, lower);
        if (transport.rank() == 1) {
          transport.send(stream, 0, data.slice(0, 0));
          peers.reduce_into(stream, ReduceOp::sum, lower);
        } else {
          transport.receive(stream, 1, data.slice(0, 0));
        }
        peers.open(stream, upper);
      });
  const std::vector<Parts> parts = contributions_of(schedule);
  EXPECT_EQ(parts[1].front(), (Part{0, 16, {1, 1}}));
  const auto race = find_race(schedule);
  EXPECT_FALSE(race) << race->text;  // rank 0 does not touch its lower half until the next meeting
}

TEST(Contributions, EndWhereAMessageHasAnotherLength) {
  const Schedule unequal =
      schedule_of(2, [](Transport& transport, Stream& stream, const View& data) {
        const bool first = transport.rank() == 0;
        if (first) transport.send(stream, 1, data.slice(0, 8));
        if (!first) transport.receive(stream, 0, data.slice(0, 4));
      });
  expect_everywhere({contributions_of(unequal)[1]}, {0, 1}, 32, "nothing came");
}

TEST(Contributions, AskForAddresses) {
  const Schedule ring = record(Strategies().find("ring")->make, one_machine(3, {}), {.count = 8});
  EXPECT_THROW((void)contributions_of(ring), ContractError);
  EXPECT_THROW((void)find_race(ring), ContractError);
}

TEST(Races, AreInNoStrategy) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (const auto& [machines, each] : {std::pair{1, 2}, {1, 5}, {1, 8}, {3, 2}}) {
      const Network network = equal_machines(machines, each, kEthernetCosts, kEthernetCosts);
      if (!why_not_recorded(strategy, network).empty()) continue;
      for (const std::int64_t window : {0, 4096}) {
        const Recording what{.count = 3000, .runs = 3, .addresses = true, .window_bytes = window};
        const auto race = find_race(record(strategy.make, network, what));
        EXPECT_FALSE(race) << strategy.name << ": " << race->text;
      }
    }
  }
}

/// Two-shot on two ranks, which ends by leave() or by close().
Body two_shot(bool closes) {
  return [closes](Transport& transport, Stream& stream, const View& data) {
    PeerAccess& peers = *transport.peer_access();
    const int rank = transport.rank();
    with_peers(peers, stream, data, [&] {
      peers.reduce_for_all(stream, ReduceOp::sum, 4 * rank, 4 * rank + 4);
      closes ? peers.close(stream) : peers.leave(stream);
    });
  };
}

TEST(Races, AreInATwoShotThatDoesNotMeetAgain) {
  EXPECT_FALSE(find_race(schedule_of(2, two_shot(true))));
  const Schedule early = schedule_of(2, two_shot(false));
  expect_everywhere(contributions_of(early), {1, 1}, 32, "right, if nobody is late");
  const auto race = find_race(early);
  ASSERT_TRUE(race);
  EXPECT_GE(race->owner, 0);
  EXPECT_NE(race->text.find("'s data: rank "), std::string::npos) << race->text;
  EXPECT_NE(race->text.find(" reduces into it (its step 2)"), std::string::npos) << race->text;
  EXPECT_NE(race->text.find(" uses it after the collective"), std::string::npos) << race->text;
}

TEST(Races, AreWhereARankGoesOnBeforeItsPartHasCome) {
  for (const bool closes : {true, false}) {
    const auto race =
        find_race(schedule_of(2, [closes](Transport& transport, Stream& stream, const View& data) {
          PeerAccess& peers = *transport.peer_access();
          const int rank = transport.rank();
          with_peers(peers, stream, data, [&] {
            peers.spread(stream, 0, 4 * rank, 4 * rank + 4);
            closes ? peers.close(stream) : peers.leave(stream);
          });
        }));
    ASSERT_EQ(race.has_value(), !closes);
    EXPECT_TRUE(closes || race->text.find(" copies ") != std::string::npos) << race->text;
  }
}

/// One-shot with one window for all runs, or with two in turn.
TEST(Races, AreInAOneShotThatOverwritesWhatOthersMayStillRead) {
  for (const std::size_t windows : {1, 2}) {
    std::vector<std::vector<void*>> memory(2);  // of each rank
    std::vector<std::size_t> turns(2);
    const Body body = [&](Transport& transport, Stream& stream, const View& data) {
      const auto rank = static_cast<std::size_t>(transport.rank());
      if (memory[rank].size() < windows) {
        memory[rank].push_back(Buffer(stream.device(), 32).data());  // no address comes again
      }
      const View window(memory[rank][turns[rank]++ % windows], {8}, DType::f32);
      PeerAccess& peers = *transport.peer_access();
      peers.copy(stream, data, window);
      with_peers(peers, stream, window, [&] {
        peers.reduce_into(stream, ReduceOp::sum, data);
        peers.leave(stream);
      });
    };
    EXPECT_EQ(find_race(schedule_of(2, body, 3)).has_value(), windows == 1);
  }
}

TEST(Races, AreNotWhereAMessageSaysWhoIsFirst) {
  for (const bool says : {true, false}) {
    const Schedule schedule =
        schedule_of(2, [says](Transport& transport, Stream& stream, const View& data) {
          PeerAccess& peers = *transport.peer_access();
          peers.open(stream, data);
          if (transport.rank() == 0) {
            peers.reduce_for_all(stream, ReduceOp::sum, 0, 8);
            if (says) transport.send(stream, 1, data.slice(0, 0));
          } else if (says) {
            transport.receive(stream, 0, data.slice(0, 0));
          }
        });
    EXPECT_EQ(find_race(schedule).has_value(), !says);
  }
}

}  // namespace
}  // namespace ringlet::comm
