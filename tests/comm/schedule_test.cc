// Schedules: what is recorded of strategies, and what is said of those whose ranks never end.
#include "comm/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "comm/schedule/check.h"
#include "comm/schedule/recording.h"
#include "tests/comm/written.h"

namespace ringlet::comm {
namespace {

Schedule recorded(std::string_view strategy, const Network& network, const Recording& what) {
  return record([strategy](Transport& transport) { return make_all_reduce(strategy, transport); },
                network, what);
}

Problem problem_of(int ranks, const Body& body) {
  return find_problem(record_written(ranks, body, {.count = 8}));
}

TEST(Schedule, HasTheBytesOfEveryStrategy) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (const auto& [machines, each] : {std::pair{1, 1}, {1, 2}, {1, 7}, {1, 8}, {3, 2}, {4, 4}}) {
      const Network network = equal_machines(machines, each, kEthernetCosts, kEthernetCosts);
      if (!why_not_recorded(strategy, network).empty()) continue;
      for (const std::int64_t count : {0, 1, 5, 1000, 100'003}) {
        std::int64_t sent = 0;
        const MakeAllReduce make = [&](Transport& transport) {
          auto made = strategy.make(transport);
          sent += made->bytes_sent(count).value();
          return made;
        };
        const Schedule schedule = record(make, network, {.count = count});
        const std::int64_t copied = strategy.name == std::string("one-shot") && network.ranks > 1
                                        ? network.ranks * count * size_of(DType::f32)
                                        : 0;  // to its window
        EXPECT_EQ(totals_of(schedule).bytes - copied, sent) << strategy.name << " " << count;
        EXPECT_EQ(find_problem(schedule).text, "") << strategy.name << " " << count;
      }
    }
  }
}

TEST(Schedule, HasStepsMessagesAndTheBusiestRank) {
  constexpr std::int64_t kBytes = 4000;
  const Totals star = totals_of(recorded("naive", one_machine(4, {}), {.count = 1000}));
  EXPECT_EQ(star.steps, 6);
  EXPECT_EQ(star.messages, 6);
  EXPECT_EQ(star.bytes, 6 * kBytes);
  EXPECT_EQ(star.busiest_bytes, 3 * kBytes);
  const Totals ring = totals_of(recorded("ring", one_machine(4, {}), {.count = 1000}));
  EXPECT_EQ(ring.steps, 6);
  EXPECT_EQ(ring.messages, 24);
  EXPECT_EQ(ring.bytes, 6 * kBytes);
  EXPECT_EQ(ring.busiest_bytes, 6 * kBytes / 4);
}

TEST(Schedule, HasTheMeetingsOfThreadsAndThePiecesOfProcesses) {
  const Network network = one_machine(4, {});
  const auto meetings = [&](const char* strategy, std::int64_t window) {
    const Recording what{.count = 1 << 18, .window_bytes = window};
    const Schedule schedule = recorded(strategy, network, what);
    return std::count_if(schedule.of(0).steps.begin(), schedule.of(0).steps.end(),
                         [](const Step& step) { return step.kind == StepKind::meeting; });
  };
  EXPECT_EQ(meetings("one-shot", 0), 1);
  EXPECT_EQ(meetings("two-shot", 0), 2);
  EXPECT_EQ(meetings("one-shot", 256 << 10), 4);
  EXPECT_EQ(meetings("two-shot", 256 << 10), 2 * 4);
}

TEST(Schedule, SaysWhyThereIsNone) {
  const Strategies strategies;
  const auto why = [&](const char* name, const Network& network) {
    const Strategy& strategy = *strategies.find(name);
    const std::string words = why_not_recorded(strategy, network);
    if (!words.empty()) {
      EXPECT_THROW((void)record(strategy.make, network, {.count = 1}), ContractError) << name;
    }
    return words;
  };
  EXPECT_EQ(why("ring", equal_machines(2, 40, {}, {})), "");
  EXPECT_EQ(why("two-shot", one_machine(64, {})), "");
  EXPECT_EQ(why("two-shot", one_machine(65, {})), "two-shot is for at most 64 ranks");
  EXPECT_EQ(why("one-shot", equal_machines(2, 2, {}, {})),
            "one-shot needs ranks that reach each other's memory, on one machine");
  EXPECT_EQ(why("nccl", one_machine(2, {})),
            "nccl is a library's own, which does not say what it sends");
}

TEST(Schedule, SaysWhoWaitsInACircleWhateverTheLength) {
  const Problem problem = problem_of(3, [](Transport& transport, Stream& stream, const View& data) {
    const int p = transport.size(), rank = transport.rank();
    transport.send(stream, (rank + 1) % p, data.slice(0, 1));
    transport.receive(stream, (rank + p - 1) % p, data.slice(1, 2));
  });
  EXPECT_EQ(problem.kind, Problem::Kind::circle);
  EXPECT_EQ(problem.text, "0 -> 1 -> 2 -> 0: all send, none receives");
}

TEST(Schedule, SaysWhichMessageHasAnotherLength) {
  const Problem problem = problem_of(2, [](Transport& transport, Stream& stream, const View& data) {
    const int other = 1 - transport.rank();
    transport.exchange(stream, other, data.slice(0, 4), other, data.slice(4, 8));
    if (transport.rank() == 0) transport.send(stream, 1, data.slice(0, 5));
    if (transport.rank() == 1) transport.receive(stream, 0, data.slice(0, 3));
  });
  EXPECT_EQ(problem.kind, Problem::Kind::unequal);
  EXPECT_EQ(problem.text,
            "rank 0 sends 20 bytes to rank 1, which expects 12 (step 2 of rank 0, step 2 of rank "
            "1)");
}

TEST(Schedule, SaysWhoWaitsForWhomWhereNobodyComes) {
  const Problem none = problem_of(3, [](Transport& transport, Stream& stream, const View& data) {
    if (transport.rank() == 0) transport.send(stream, 1, data);
  });
  EXPECT_EQ(none.kind, Problem::Kind::unmatched);
  EXPECT_EQ(none.text,
            "rank 0 sends 32 bytes to rank 1; ranks 1 and 2 are in no exchange; ranks 1 and 2 have "
            "ended");
  const Problem meeting = problem_of(3, [](Transport& transport, Stream& stream, const View& data) {
    if (transport.rank() > 0) transport.peer_access()->open(stream, data);
  });
  EXPECT_EQ(meeting.kind, Problem::Kind::unmatched);
  EXPECT_EQ(meeting.text, "ranks 1 and 2 wait for all to meet; rank 0 has ended");
}

TEST(Schedule, FindsACircleBesideHalvesThatHaveEnded) {
  const Problem problem = problem_of(3, [](Transport& transport, Stream& stream, const View& data) {
    const View part = data.slice(0, 1);
    if (transport.rank() == 0) {
      for (const int to : {1, 1, 2}) transport.send(stream, to, part);
    } else if (transport.rank() == 1) {
      transport.exchange(stream, 2, part, 0, data.slice(1, 2));
      transport.receive(stream, 0, part);
    } else {
      for (const int from : {0, 1}) transport.receive(stream, from, part);
    }
  });
  EXPECT_EQ(problem.kind, Problem::Kind::circle);
  EXPECT_EQ(problem.text.substr(0, 17), "0 -> 1 -> 2 -> 0:") << problem.text;
}

TEST(Schedule, SaysWhereRanksShowAnotherLengthOrNothing) {
  const Problem longer = problem_of(2, [](Transport& transport, Stream& stream, const View& data) {
    transport.peer_access()->open(stream, data.slice(0, 3 + transport.rank()));
  });
  EXPECT_EQ(longer.kind, Problem::Kind::unequal);
  EXPECT_EQ(longer.text,
            "rank 0 shows 12 bytes where rank 1 shows 16 bytes (step 1 of rank 0, step 1 of rank "
            "1)");
  const Problem nothing = problem_of(2, [](Transport& transport, Stream& stream, const View& data) {
    PeerAccess& peers = *transport.peer_access();
    transport.rank() == 0 ? peers.open(stream, data) : peers.meet(stream);
  });
  EXPECT_EQ(nothing.kind, Problem::Kind::unequal);
}

TEST(Schedule, IsOfANetworkThatFitsItsRanks) {
  const auto refused = [](const Network& network) {
    EXPECT_THROW((void)recorded("ring", network, {.count = 1}), ContractError);
  };
  refused({.ranks = 0});
  refused({.ranks = 2, .machine_of = {0}});
  refused({.ranks = 2, .machine_of = {0, -1}});
  refused({.ranks = 2, .slowness = {1}});
  refused({.ranks = 2, .slowness = {1, 0.5}});
}

TEST(Schedule, TakesALaterMessageForNoEarlierOne) {
  // Rank 0's two sends to rank 1 come in their order, though rank 1 asks rank 2 in between.
  const Problem problem = problem_of(3, [](Transport& transport, Stream& stream, const View& data) {
    if (transport.rank() == 0) {
      transport.send(stream, 1, data.slice(0, 1));
      transport.send(stream, 1, data.slice(0, 2));
    } else if (transport.rank() == 1) {
      transport.receive(stream, 0, data.slice(0, 1));
      transport.receive(stream, 2, data.slice(0, 3));
      transport.receive(stream, 0, data.slice(0, 2));
    } else {
      transport.send(stream, 1, data.slice(0, 3));
    }
  });
  EXPECT_EQ(problem.text, "");
}

TEST(Schedule, ChecksContractsAsTransportsDo) {
  EXPECT_THROW((void)problem_of(2, [](Transport& transport, Stream& stream,
                                      const View& data) { transport.send(stream, 2, data); }),
               ContractError);
  EXPECT_THROW((void)problem_of(2,
                                [](Transport& transport, Stream& stream, const View& data) {
                                  const int other = 1 - transport.rank();
                                  transport.exchange(stream, other, data.slice(0, 4), other,
                                                     data.slice(3, 7));
                                }),
               ContractError);
}

}  // namespace
}  // namespace ringlet::comm
