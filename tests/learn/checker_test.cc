// The checker of the course, without a compiler: what it says of right and wrong strategies
// (learn/self_test asks the same of files).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/reduce.h"
#include "learn/check/chapters.h"
#include "learn/check/child.h"
#include "learn/check/data.h"
#include "learn/check/layers.h"
#include "learn/check/plants.h"
#include "learn/check/trial.h"
#include "tests/support/testdata.h"

namespace ringlet::learn {
namespace {

using comm::combine_of;
using comm::operation_of;
using ::testing::StartsWith;

/// A strategy that is one function.
class Written final : public comm::AllReduce {
 public:
  using Body = std::function<void(Written& self, Stream& stream, View data, ReduceOp op)>;
  Written(comm::Transport& transport, Body body) : AllReduce(transport), body_(std::move(body)) {}
  const char* name() const override { return "written"; }
  void run(Stream& stream, View data, ReduceOp op) override { body_(*this, stream, data, op); }
  std::optional<std::int64_t> elements_sent(std::int64_t /*count*/) const override { return 0; }
  using AllReduce::finish;
  using AllReduce::rank;
  using AllReduce::size;
  using AllReduce::transport;
  int next() const { return (rank() + 1) % size(); }
  int previous() const { return (rank() + size() - 1) % size(); }

 private:
  Body body_;
};

LearnersFile file_of(Written::Body body) {
  LearnersFile file;
  file.strategy = *comm::Strategies().find("ring");
  file.strategy.make = [body](comm::Transport& transport) {
    return std::make_unique<Written>(transport, body);
  };
  return file;
}
LearnersFile file_of(const char* strategy) {
  return {.strategy = *comm::Strategies().find(strategy)};
}

Finding found(const std::function<void(Board&)>& work, const Limits& limits = {}) {
  std::string printed;
  return in_child(limits, work, &printed);
}
Finding checked(const LearnersFile& file, const char* chapter = "ring") {
  return found([&](Board& board) { check_layers(*find_chapter(chapter), file, board, ""); });
}

/// The verdict and its words.
void expect(const Finding& finding, Verdict verdict, const std::string& words) {
  EXPECT_EQ(name_of(finding.verdict), name_of(verdict)) << finding.words;
  EXPECT_THAT(finding.words, StartsWith(words));
}

TEST(Checker, PassesTheProductsOwn) {
  const Finding ring = checked(file_of("ring"));
  expect(ring, Verdict::passed, "4 ranks, 3360 bytes each: 20160 bytes move in all, 5040");
  EXPECT_EQ(ring.costs->bytes_busiest, 5040);
  EXPECT_EQ(ring.costs->messages, 24);
  expect(checked(file_of("naive"), "naive"), Verdict::passed, "4 ranks");
  expect(checked(file_of("two-shot"), "direct"), Verdict::passed, "4 ranks");
  expect(checked(file_of("two-level")), Verdict::passed, "4 ranks");
}

TEST(Checker, SaysWhoWaitsInACircle) {
  const LearnersFile file = file_of([](Written& self, Stream& stream, View data, ReduceOp op) {
    if (self.size() < 3) return self.finish(stream, data, op);
    self.transport().send(stream, self.next(), data);
    self.transport().receive(stream, self.previous(), data, combine_of(op));
  });
  // What two ranks have wrong shows before.
  expect(checked(file), Verdict::wrong_values, "p = 2, n = 1, sum: rank 0, part 0 has the");
  const auto three = [&](Board& board) {
    Trial(*find_chapter("ring"), file.strategy.make, comm::one_machine(3, {}), {}, board)
        .run({.elements = 4}, Fill::who);
  };
  expect(found(three), Verdict::deadlock,
         "p = 3, n = 4, sum: 0 -> 1 -> 2 -> 0: all send, none receives");
}

TEST(Checker, LetsShortMessagesLeaveAtOnceWhereAsked) {
  const LearnersFile file = file_of([](Written& self, Stream& stream, View data, ReduceOp op) {
    std::vector<std::byte> own(static_cast<std::size_t>(data.bytes()));
    const View passed(own.data(), data.shape(), data.dtype());
    std::copy_n(static_cast<std::byte*>(data.data()), own.size(), own.data());
    for (int step = 1; step < self.size(); ++step) {
      self.transport().send(stream, self.next(), passed);
      self.transport().receive(stream, self.previous(), passed);
      reduce_into(stream, operation_of(combine_of(op)), passed, data);
    }
    self.finish(stream, data, op);
  });
  expect(checked(file), Verdict::deadlock, "p = 2, n = 0, sum: 0 -> 1 -> 0: all send");
  const Finding finding =
      found([&](Board& board) { check_eager(*find_chapter("repair"), file, 1024, board); });
  expect(finding, Verdict::deadlock, "p = 4, n = 512, sum: 0 -> 1 -> 2 -> 3 -> 0: all send");
}

TEST(Checker, AsksForAMeanWhereOneIsAsked) {
  const auto star = [](int divisions) {
    return file_of([divisions](Written& self, Stream& stream, View data, ReduceOp op) {
      if (self.rank() != 0) {
        self.transport().send(stream, 0, data);
        return self.transport().receive(stream, 0, data);
      }
      for (int other = 1; other < self.size(); ++other) {
        self.transport().receive(stream, other, data, combine_of(op));
      }
      for (int times = 0; times < divisions; ++times) self.finish(stream, data, op);
      for (int other = 1; other < self.size(); ++other) self.transport().send(stream, other, data);
    });
  };
  expect(checked(star(1), "naive"), Verdict::passed, "4 ranks");
  expect(checked(star(0), "naive"), Verdict::wrong_values,
         "p = 2, n = 1, mean: rank 0, element 0 has the sum of all ranks, not divided by 2");
  expect(checked(star(2), "naive"), Verdict::wrong_values,
         "p = 2, n = 1, mean: rank 0, element 0 has the sum of all ranks, divided by 2 twice");
  expect(checked(star(1)), Verdict::too_many_bytes, "p = 3, n = 840, sum: the busiest rank moves");
}

TEST(Checker, NamesWhatDoesNotFit) {
  expect(checked(file_of([](Written& self, Stream& stream, View data, ReduceOp) {
           if (self.rank() == 0 && self.size() > 1) self.transport().send(stream, 1, data);
         })),
         Verdict::unmatched, "p = 2, n = 0, sum: rank 0 sends 0 bytes to rank 1");
  expect(checked(file_of([](Written& self, Stream& stream, View data, ReduceOp) {
           self.transport().send(stream, self.rank() + 1, data);
         })),
         Verdict::wrong_peer, "p = 1, n = 0, sum: rank 0 sends to rank 1; there are ranks 0 to 0");
  expect(checked(file_of([](Written& self, Stream& stream, View data, ReduceOp) {
           while (self.size() > 1) {
             self.transport().exchange(stream, self.next(), data.slice(0, 0), self.previous(),
                                       data.slice(0, 0));
           }
         })),
         Verdict::endless, "p = 2, n = 0, sum: rank 0 is in its exchange 129");
  expect(checked(file_of([](Written&, Stream&, View data, ReduceOp) {
           *(static_cast<char*>(data.data()) + data.bytes()) = 1;
         })),
         Verdict::out_of_range, "p = 1, n = 0, sum: rank 0 writes behind its data");
}

/// Everybody adds to what is shared, or to memory of their own.
LearnersFile with_scratch(float* shared) {
  return file_of([shared](Written& self, Stream& stream, View data, ReduceOp op) {
    std::vector<float> own(static_cast<std::size_t>(data.count()));
    std::vector<float> passed(own.size());
    if (data.dtype() != DType::f32) throw std::runtime_error("is for f32");
    float* const scratch = shared != nullptr ? shared : own.data();
    std::copy_n(data.f32(), passed.size(), passed.data());
    for (int step = 1; step < self.size(); ++step) {
      const View arriving(scratch, data.shape()), sent(passed.data(), data.shape());
      self.transport().exchange(stream, self.next(), sent, self.previous(), arriving);
      std::copy_n(scratch, passed.size(), passed.data());
      reduce_into(stream, operation_of(combine_of(op)), sent, data);
    }
    self.finish(stream, data, op);
  });
}

TEST(Checker, FindsARaceOverSharedMemoryWithoutLuck) {
  std::vector<float> scratch(64);
  const auto race_in = [](const LearnersFile& file) {
    return found([&](Board& board) {
      Trial trial(*find_chapter("ring"), file.strategy.make, comm::one_machine(3, {}), {}, board);
      trial.run({.elements = 17}, Fill::who);
      board.conclude(trial.race() ? Verdict::race : Verdict::passed, "");
    });
  };
  expect(race_in(with_scratch(scratch.data())), Verdict::race, "");
  expect(race_in(with_scratch(nullptr)), Verdict::passed, "");
}

TEST(Checker, BringsNumbersOfBothSigns) {
  const LearnersFile file = file_of([](Written& self, Stream& stream, View data, ReduceOp op) {
    comm::Strategies().make("ring", self.transport())->run(stream, data, op);
    if (op != ReduceOp::max || data.dtype() != DType::f32) return;
    for (std::int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::max(data.f32()[i], 0.0F);
  });
  expect(checked(file), Verdict::wrong_values, "p = 1, n = 1, max: rank 0, element 0 is 0; it");
}

TEST(Checker, LooksAtLongDataAndManyRanksToo) {
  const auto ring_where = [](std::function<bool(const Written&, std::int64_t, ReduceOp)> is_right) {
    return file_of([is_right](Written& self, Stream& stream, View data, ReduceOp op) {
      if (!is_right(self, data.count(), op)) return;
      comm::Strategies().make("ring", self.transport())->run(stream, data, op);
    });
  };
  expect(checked(ring_where([](const Written&, std::int64_t count, ReduceOp op) {
           return count < 500 || op != ReduceOp::min;
         })),
         Verdict::wrong_values, "p = 3, n = 9001, min: rank 0, element 0 is");
  expect(checked(ring_where(
             [](const Written& self, std::int64_t, ReduceOp) { return self.size() <= 8; })),
         Verdict::wrong_values, "p = 13, n = 29, sum: rank 0, element 0 is");
  expect(checked(ring_where(
             [](const Written&, std::int64_t count, ReduceOp) { return count < 100'000; })),
         Verdict::wrong_values, "p = 2, n = 129068, sum: rank 0, element 0 is");
}

TEST(Checker, LetsARingPassItsPartsInPieces) {
  const LearnersFile file = file_of([](Written& self, Stream& stream, View data, ReduceOp op) {
    constexpr std::int64_t kPiece = 16;
    const auto ring = comm::Strategies().make("ring", self.transport());
    for (std::int64_t begin = 0; begin < data.count(); begin += kPiece) {
      ring->run(stream, data.slice(begin, std::min(begin + kPiece, data.count())), op);
    }
  });
  expect(found([&](Board& board) {
           Trial trial(*find_chapter("ring"), file.strategy.make, comm::one_machine(2, {}), {},
                       board);
           trial.run({.elements = 9001}, Fill::place);
           board.conclude(Verdict::passed, "");
         }),
         Verdict::passed, "");
}

TEST(Checker, KeepsTheThreadsOfRanks) {
  const LearnersFile file = file_of([](Written&, Stream&, View, ReduceOp) {
    thread_local int runs = 0;
    if (++runs > 3) throw std::runtime_error("again");
  });
  expect(checked(file), Verdict::crash, "p = 1, n = 0, mean: rank 0 throws std::runtime_error");
}

TEST(Checker, LeavesNothingRunning) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  expect(found([](Board&) {
           if (fork() == 0) {
             setsid();
             alarm(60);
             while (true) pause();
           }
           std::exit(0);  // NOLINT(concurrency-mt-unsafe): one thread
         }),
         Verdict::crash, "before its first run it ends the program");
  close(ends[1]);
  pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&end, 1, 10'000), 1);  // as soon as nobody holds the other end any more
  close(ends[0]);
}

TEST(Checker, ExplainsWhatIsInAResult) {
  const auto sum = [](double number, int ranks) {
    const Case at{.ranks = ranks, .elements = 3};
    return explain(number, expected_at(Fill::who, at, 0), Fill::who, at, 0);
  };
  EXPECT_EQ(sum(8 + 64, 3),
            "has the numbers of 1 and 2; it should have those of 0, 1 and 2, each once");
  EXPECT_EQ(sum(1 + 2 * 8, 2),
            "has the numbers of 0 and 1 (twice); it should have those of 0 and 1, each once");
  EXPECT_EQ(sum(0.5, 2), "is 0.5; it should be 9");
  const auto mean = [](double number) {
    const Case at{.ranks = 3, .elements = 3, .op = ReduceOp::mean};
    return explain(number, expected_at(Fill::who, at, 0), Fill::who, at, 0);
  };
  EXPECT_EQ(mean(73), "has the sum of all ranks, not divided by 3");
  EXPECT_EQ(mean(73.0 / 9), "has the sum of all ranks, divided by 3 twice");
  EXPECT_EQ(mean(9.0 / 3),
            "has the numbers of 0 and 1, divided by 3; it should have those of 0, 1 "
            "and 2, each once");
  const Case places{.ranks = 2, .elements = 4};
  EXPECT_EQ(explain(expected_at(Fill::place, places, 3), expected_at(Fill::place, places, 1),
                    Fill::place, places, 1),
            "has what element 3 should have");
}

TEST(Checker, EndsWhateverAFileDoes) {
  constexpr Limits kShort{.still_busy_s = 0.2, .still_asleep_s = 0.2, .all_s = 30};
  const auto in_a_case = [](const std::function<void()>& what) {
    return [what](Board& board) {
      board.begin('A', {.ranks = 2, .elements = 1});
      board.note(1, 3);
      what();
    };
  };
  const std::string where = "p = 2, n = 1, sum: rank 1, after 3 exchanges, ";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  expect(found(in_a_case([] { std::exit(0); })), Verdict::crash, where + "ends the program");
  expect(found(in_a_case([] { raise(SIGSEGV); })), Verdict::crash, where + "touches memory");
  expect(found(in_a_case([] { std::abort(); })), Verdict::crash, where + "aborts");
  expect(found(in_a_case([] {
           std::fputs("ring.cc:4: run: Assertion `p < 3' failed.\n", stderr);
           std::abort();
         })),
         Verdict::crash, where + "fails its assertion p < 3");
  expect(found(in_a_case([] { raise(SIGSTOP); }), kShort), Verdict::endless,
         where + "does not come back");
  expect(found(in_a_case([] { pause(); }), kShort), Verdict::endless, where + "does not come back");
  expect(found(in_a_case([] {
                 for (volatile bool on = true; on;) continue;
               }),
               kShort),
         Verdict::endless, where + "does not come back");
}

TEST(Checker, AddsUpWorkAndSleep) {
  const auto lasts = [](double busy_s, int asleep_ms) {
    return found(
        [=](Board& board) {
          const double begun = static_cast<double>(std::clock());
          while (static_cast<double>(std::clock()) - begun < busy_s * CLOCKS_PER_SEC) {
            board.note(0, 1);
          }
          for (int ms = 0; ms < asleep_ms; ++ms) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            board.note(0, 1);
          }
          board.conclude(Verdict::passed, "");
        },
        {.all_busy_s = 0.6, .all_asleep_s = 2});
  };
  expect(lasts(0.4, 0), Verdict::passed, "");
  expect(lasts(0.4, 1800), Verdict::endless, "all runs together take too long: at most 0.6 s");
}

TEST(Checker, ShowsWhatTheLastCasePrinted) {
  std::string printed;
  const Finding finding = in_child(
      {},
      [](Board& board) {
        board.begin('A', {.ranks = 1});
        std::printf("before\n");
        board.begin('A', {.ranks = 2});
        std::printf("after\n");
        board.conclude(Verdict::crash, "it");
      },
      &printed);
  EXPECT_EQ(printed, "after\n");
  EXPECT_EQ(finding.words, "p = 2, n = 0, sum: it");
}

TEST(Checker, PlantsStandOnceInTheProductsFiles) {
  const std::string root = ringlet::testing::checkout("");
  for (const char* file :
       {"faults", "check/samples", "check/split_samples", "check/cost_samples",
        "check/buckets_samples", "check/direct_samples", "check/scale_samples"}) {
    const std::vector<Plant> plants =
        read_plants(ringlet::testing::checkout(std::string("learn/") + file + ".json"));
    EXPECT_FALSE(plants.empty()) << file;
    for (const Plant& plant : plants) EXPECT_NO_THROW(planted(plant, root)) << plant.name;
  }
}

TEST(Checker, WritesWhatItFindsAsOneLineOfJson) {
  const Finding finding{.verdict = Verdict::wrong_values,
                        .layer = 'B',
                        .words = "a \"word\"",
                        .at = {.ranks = 3, .elements = 4, .op = ReduceOp::mean}};
  EXPECT_EQ(json_of("ring", finding),
            R"({"chapter":"ring","verdict":"wrong-values","layer":"B","words":"a \"word\"",)"
            R"("ranks":3,"elements":4,"op":"mean"})");
}

}  // namespace
}  // namespace ringlet::learn
