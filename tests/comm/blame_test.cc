// Who is named when a rank has waited too long: the one that keeps all others, and nobody who waits
// or works.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "comm/communicator.h"
#include "comm/report/patience.h"
#include "comm/report/wait_watch.h"
#include "kernels/memory.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// What one of the ranks throws that is no consequence of what another one throws.
std::string root_of(const std::vector<std::string>& messages) {
  std::string root;
  for (const std::string& message : messages) {
    if (!contains(message, "stopped, because")) root += message;
  }
  return root;
}

std::unique_ptr<ProcessGroup> join(const std::string& run, int process, int processes,
                                   ProcessTransport transport) {
  return std::make_unique<ProcessGroup>(
      ProcessPosition{process, processes, run, "test"},
      ProcessGroupOptions{.timeout_seconds = 20, .transport = transport});
}

/// A process that comes to a run and is stopped when all have come (SIGSTOP), as by a debugger.
class StoppedProcess {
 public:
  StoppedProcess(const std::string& run, int process, int processes, ProcessTransport transport)
      : others_(processes - 1) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
    const Descriptor reads(pipe[0]);
    all_have_come_ = Descriptor(pipe[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const auto group = join(run, process, processes, transport);
    char byte = 0;
    (void)!::read(reads.get(), &byte, 1);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ~StoppedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  /// Each other process calls this when it has come. Returns when this one is stopped.
  void await() {
    others_.arrive_and_wait();
    std::call_once(awaited_, [this] {
      (void)!::write(all_have_come_.get(), "", 1);
      ::waitpid(pid_, nullptr, WUNTRACED);
    });
  }

 private:
  pid_t pid_ = -1;
  Descriptor all_have_come_;
  std::latch others_;
  std::once_flag awaited_;
};

using Meeting = std::function<void(Communicator&, Stream&)>;

/// The message of a meeting of three, of which the process `absent` is stopped.
std::string message_without(int absent, ProcessTransport transport, const Meeting& meeting) {
  const std::string run = new_run();
  StoppedProcess stopped(run, absent, 3, transport);
  return root_of(messages_of_ranks(3, [&](int rank) {
    if (rank == absent) return;
    const auto group = join(run, rank, 3, transport);
    stopped.await();
    const auto device = in_place_device();
    Communicator communicator(group->transport(rank), {.timeout_seconds = 0.5});
    meeting(communicator, device->communication());
  }));
}

void expect_named(int absent, const std::string& message) {
  const std::string number = std::to_string(absent);
  EXPECT_TRUE(message.starts_with("rank " + number + " (process " + number +
                                  ") does not answer, so its process is stopped or hangs: see ps"))
      << message;
  EXPECT_FALSE(contains(message, "circle")) << message;
  EXPECT_FALSE(contains(message, "never entered")) << message;
}

class Blame : public testing::TestWithParam<ProcessTransport> {
 protected:
  void SetUp() override { skip_without(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, Blame,
                         testing::Values(ProcessTransport::shm, ProcessTransport::gloo),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(Blame, InAGatherIsWithTheOneThatStopped) {
  expect_named(2, message_without(2, GetParam(), [](Communicator& all, Stream& stream) {
                 all.gather_text(stream, "of this rank", "names");
               }));
}

TEST(Blame, IsWithProcess0WhichNoLongerPassesOnAnswers) {
  const std::string message = message_without(
      0, ProcessTransport::shm, [](auto& all, auto& stream) { all.barrier(stream, "start"); });
  expect_named(0, message);
  EXPECT_TRUE(contains(message, "nothing is known of ranks 0 and ")) << message;
}

TEST_P(Blame, CallsTheOneThatStoppedWhatItIsCalled) {
  const std::string run = new_run();
  StoppedProcess stopped(run, 1, 2, GetParam());
  const auto group = join(run, 0, 2, GetParam());
  group->name_ranks([](const std::vector<int>& ranks) {
    return std::string(ranks.front() == 0 ? "the cellar" : "the tower");
  });
  stopped.await();
  group->transport(0).set_timeout(0.5);
  const auto device = in_place_device();
  const Tensor number(*device, {1});
  try {
    group->transport(0).receive(device->communication(), 1, number);
    FAIL() << "nobody sent it";
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(std::string_view(error.what())
                    .starts_with("the tower (process 1) does not answer, so its process is stopped "
                                 "or hangs: see ps; the cellar waited 0.5 s in an exchange with "
                                 "rank 1"))
        << error.what();
  }
}

/// Who waits along one axis need not have the stopped process on it.
TEST(Blame, IsWithAStoppedProcessThatIsOnAnotherAxis) {
  LocalGroup group(2, {.world_size = 4});  // nobody answers elsewhere
  Transport& own = group.transport(0);
  own.set_line({"data", {0, 1}});
  own.set_timeout(0.3);
  const auto device = in_place_device();
  const Tensor number(*device, {1});
  try {
    own.receive(device->communication(), 1, number);
    FAIL() << "nobody sent it";
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(std::string_view(error.what())
                    .starts_with("axis data (ranks 0 and 1): ranks 2 and 3 (process 1) do not "
                                 "answer, so its process is stopped or hangs: see ps; "))
        << error.what();
  }
}

TEST(Blame, OfAValueThatDoesNotComeIsWithTheOneThatStopped) {
  const std::string run = new_run();
  StoppedProcess stopped(run, 1, 2, ProcessTransport::shm);
  const auto group = join(run, 0, 2, ProcessTransport::shm);
  stopped.await();
  try {
    group->agree("model's file", std::nullopt, 0.3);
    FAIL() << "nobody gave it";
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("rank 1 (process 1) does not answer, "))
        << error.what();
    EXPECT_TRUE(contains(error.what(), "process 0 waited 0.3 s for another one's \"model's file\""))
        << error.what();
  }
}

/// Rank 0 is in its second collective, where it waits for rank 1. That is in the first one still,
/// where it waits for rank 2, which is elsewhere.
TEST(Blame, IsNotWithWhoWaits) {
  LocalGroup group(3);
  group.transport(1).recorder().enter(CollectiveKind::all_gather, 8, "names");
  group.transport(2).recorder().set_activity("data loading");
  FlightRecorder& own = group.transport(0).recorder();
  own.enter(CollectiveKind::all_gather, 8, "names");
  own.leave();
  own.enter(CollectiveKind::barrier, 0, "start");
  group.transport(0).set_timeout(0.05);
  std::string message;
  try {
    float number = 0;
    group.transport(0).receive(in_place_device()->communication(), 1,
                               View(&number, {1}, DType::f32));
  } catch (const TimeoutError& error) {
    message = error.what();
  }
  EXPECT_TRUE(
      message.starts_with("rank 2 never entered #2 barrier start, 0 bytes; rank 2 was last "
                          "seen in \"data loading\""))
      << message;
  EXPECT_TRUE(contains(message, "; rank 1 was last seen still in #1 all_gather names")) << message;
}

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kSecond;

RankStatus in_collective() {
  CollectiveRecord record;
  record.tag.sequence = 1;
  record.entered_ns = kNow - kSecond;
  return {.latest = record};
}
/// In no collective, and at work so many seconds ago.
RankStatus at_work(std::int64_t seconds_ago) { return {.worked_ns = kNow - seconds_ago * kSecond}; }

TEST(Patience, IsForWhoWorksAndNobodyElse) {
  const auto patience = [](const StatusOfRanks& status) {
    return patience_with(status, 0, seconds(10), kNow);
  };
  EXPECT_EQ(patience({in_collective(), at_work(4)}), seconds(6));
  EXPECT_EQ(patience({in_collective(), at_work(4), at_work(1), in_collective()}), seconds(9));
  EXPECT_EQ(patience({in_collective(), at_work(10)}), seconds(0)) << "as long ago as the time-out";
  EXPECT_EQ(patience({in_collective(), at_work(90)}), seconds(0));
  EXPECT_EQ(patience({at_work(1), in_collective()}), seconds(0)) << "its own work is none";
  RankStatus busy_inside = in_collective();
  busy_inside.worked_ns = kNow;
  EXPECT_EQ(patience({in_collective(), busy_inside, RankStatus()}), seconds(0))
      << "whoever is inside waits";
  EXPECT_EQ(patience({in_collective(), busy_inside}), seconds(9))
      << "the last one came a second ago, and its message may be under way";
  RankStatus in_another = in_collective();
  in_another.latest->tag.sequence = 2;
  EXPECT_EQ(patience({in_collective(), in_another}), seconds(0)) << "they wait for each other";
  EXPECT_EQ(patience({in_collective(), RankStatus()}), seconds(0)) << "it has never worked";
  EXPECT_EQ(patience({in_collective(), at_work(1), std::nullopt}), seconds(0))
      << "rank 2 does not answer";
  EXPECT_EQ(patience({in_collective(), RankStatus{.worked_ns = kNow, .unheard = true}}),
            seconds(0));
}

TEST(Patience, CountsNoTimeInWhichTheProcessWasStopped) {
  SlicedWait wait(milliseconds(1200));
  nanoseconds sum{0};
  int slices = 0;
  for (nanoseconds slice = wait.next(); slice.count() > 0; slice = wait.next(), ++slices) {
    EXPECT_LE(slice, milliseconds(500));
    sum += slice;
  }
  EXPECT_EQ(sum, milliseconds(1200));
  EXPECT_EQ(slices, 4);  // 10, 500, 500 and 190 ms
  EXPECT_EQ(SlicedWait(seconds(0)).next(), seconds(0));
}

class AtWork : public testing::TestWithParam<ProcessTransport> {
 protected:
  void SetUp() override { skip_without(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, AtWork,
                         testing::Values(ProcessTransport::shm, ProcessTransport::gloo),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Rank 1 comes when its work is done, which takes several time-outs.
void expect_waited_for(const Split& split, const std::string& strategy) {
  Processes world(split);
  run_ranks(world.size(), [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {.strategy = strategy, .timeout_seconds = 1});
    for (int i = 0; rank == 1 && i < 80; ++i) {
      communicator.note_work();
      std::this_thread::sleep_for(milliseconds(30));
    }
    std::vector<float> data(100, 1.0F);
    communicator.all_reduce(device->communication(), view_of(data), "evaluation");
    EXPECT_EQ(data.front(), static_cast<float>(world.size()));
  });
}

TEST_P(AtWork, ARankIsWaitedFor) { expect_waited_for({2, 1, GetParam()}, "ring"); }

TEST(AtWork, ARankIsWaitedForInTheEnginesOwnCollectives) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  expect_waited_for({3, 1, ProcessTransport::gloo}, "gloo");
}

TEST(WaitWatch, GivesUpAWaitInWhichNothingMoves) {
  LocalGroup group(2);
  group.transport(0).set_timeout(0.2);
  std::atomic<std::uint64_t> moves{0};
  std::atomic<int> given_up{-1};
  WaitWatch watch(
      group.transport(0), [&] { return moves.load(); }, [&](int peer) { given_up.store(peer); });
  {
    const WaitWatch::Waiting waiting(watch, 1);
    for (int i = 0; i < 40; ++i) {
      moves.fetch_add(1);
      std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_EQ(given_up.load(), -1) << "something moves";
  }
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(given_up.load(), -1) << "nobody waits";
  const WaitWatch::Waiting waiting(watch, 1);
  while (given_up.load() < 0) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(given_up.load(), 1);
}

}  // namespace
}  // namespace ringlet::comm
