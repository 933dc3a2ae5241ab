// One replica fails, at every point where it can: all end at once, and the user reads the cause.
#include "train/reports/failure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <typeinfo>

#include "base/files/atomic_file.h"
#include "comm/core/errors.h"
#include "comm/transport/local/local_transport.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "tests/comm/failing_transport.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/recipe/models.h"

namespace ringlet::train {
namespace {

using comm::FailingTransport;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr double kLongestEnd = 10;  // seconds

/// The message of what `action` throws as an `E`, quickly enough.
template <class E, class Action>
std::string quick_message_of(Action action) {
  const auto start = steady_clock::now();
  std::string message = testing::message_of<E>(action);
  EXPECT_LT(duration<double>(steady_clock::now() - start).count(), kLongestEnd);
  return message;
}

TrainOptions small_options(int replicas, const std::string& sync = "ring") {
  TrainOptions options = plain_options(replicas, sync);
  options.recipe.batch_size = 16;
  options.execution.bucket_kb = 0;
  return options;
}

const data::Splits& small_data() {
  static const data::Splits data = formula_splits(64, 20);
  return data;
}

RunSetup small_setup(const TrainOptions& options) {
  return make_run_setup(options, small_data(), static_cast<int>(options.execution.devices.size()));
}

/// Runs forward of a chosen step into `what` on one rank.
BeforeSteps in_forward(int victim, int step, const std::function<void(Replica&)>& what) {
  return [=](TrainLoop& loop, Device&, int rank) {
    if (rank != victim) return;
    Replica& replica = loop.replica();
    const auto count = std::make_shared<int>(0);
    replica.tape().set_inspector([=, &replica](const char* layer, const char*, const View&) {
      if (std::string(layer) == "loss" && ++*count == step) what(replica);
    });
  };
}

class Strategies : public ::testing::TestWithParam<std::string> {};

TEST_P(Strategies, AReplicaThatThrowsInForward) {
  for (const int victim : {0, 2}) {
    const std::string message = quick_message_of<Error>([&] {
      run(small_setup(small_options(3, GetParam())), {},
          in_forward(victim, 2, [](Replica&) { throw std::runtime_error("a fuse blew"); }));
    });
    EXPECT_EQ(message, "replica " + std::to_string(victim) + " (cpu:0): a fuse blew");
  }
}

TEST_P(Strategies, AReplicaThatThrowsInBackwardWhileBucketsAreUnderWay) {
  const auto spoil_last_gradient = [](Replica& replica) {  // conv1's: the last one of backward
    replica.parameters().registry().parameters.front()->gradient = View(nullptr, {1});
  };
  for (const int victim : {0, 2}) {
    const std::string message = quick_message_of<Error>([&] {
      run(small_setup(small_options(3, GetParam())), {},
          in_forward(victim, 2, spoil_last_gradient));
    });
    EXPECT_TRUE(testing::says(message, {"replica " + std::to_string(victim) + " (cpu:0): "}));
    EXPECT_EQ(message.find("stopped, because"), std::string::npos) << message;
  }
}

/// Trains with every rank's exchanges through `wrap`ped transports; the number of rank 0's.
int run_through(const RunSetup& setup, int victim, int fails_at) {
  int exchanges = 0;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& given) {
        const int rank = given.rank();
        FailingTransport transport(given.transport(),
                                   rank == victim ? fails_at : FailingTransport::kNever);
        comm::Communicator communicator(transport, {setup.options.execution.sync, 60});
        TrainLoop loop(setup, device, communicator, {});
        loop.run();
        if (rank == victim) exchanges = transport.exchanges();
      },
      nullptr);
  return exchanges;
}

TEST_P(Strategies, AReplicaThatThrowsInAnyExchange) {
  for (const bool overlap : {true, false}) {
    TrainOptions options = small_options(3, GetParam());
    options.recipe.model = "lenet";
    options.execution.overlap = overlap;
    options.execution.bucket_kb = 64;
    options.max_steps = 1;
    const RunSetup setup = small_setup(options);
    for (int victim = 0; victim < 3; ++victim) {
      const int exchanges = run_through(setup, victim, FailingTransport::kNever);
      ASSERT_GT(exchanges, 5);
      for (int k = 0; k < exchanges; ++k) {
        const std::string message = quick_message_of<Error>([&] { run_through(setup, victim, k); });
        EXPECT_EQ(message, "replica " + std::to_string(victim) + " (cpu:0): the cable was cut")
            << "exchange " << k << ", overlap " << overlap;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, ::testing::Values("naive", "ring", "doubling"),
                         [](const auto& test) { return test.param; });

TEST(Failure, InTheListenersOfRank0) {
  class Broken : public RunListener {
    void step_done(const StepReport&) override { throw FileError("the disk is full"); }
  } broken;
  EXPECT_EQ(quick_message_of<Error>([&] { run(small_options(3), small_data(), {&broken}); }),
            "replica 0 (cpu:0): the disk is full");
}

TEST(Failure, OfTheOnlyReplicaNeedsNoName) {
  class Broken : public RunListener {
    void epoch_done(const EpochReport&) override { throw FileError("the disk is full"); }
  } broken;
  EXPECT_EQ(quick_message_of<Error>([&] { run(small_options(1), small_data(), {&broken}); }),
            "the disk is full");
}

TEST(Failure, AMissingFileOfWeights) {
  TrainOptions options = small_options(3);
  options.files.init = "/no/such/file";
  EXPECT_TRUE(testing::says(quick_message_of<Error>([&] { run(options, small_data()); }),
                            {"replica 0", "/no/such/file"}));
}

TEST(Failure, ADeviceThatDoesNotExist) {
  TrainOptions options = small_options(3);
  options.execution.devices[1].index = 5;
  EXPECT_TRUE(testing::says(quick_message_of<Error>([&] { run(options, small_data()); }),
                            {"replica 1 (cpu:5)", "does not exist"}));
}

TEST(Failure, AReplicaThatHangsIsNamed) {
  TrainOptions options = small_options(3);
  options.execution.comm_timeout = 0.3;
  const auto hang =
      in_forward(1, 2, [](Replica&) { std::this_thread::sleep_for(milliseconds(2000)); });
  const std::string message =
      quick_message_of<comm::TimeoutError>([&] { run(small_setup(options), {}, hang); });
  EXPECT_TRUE(testing::says(message, {"rank 1", "forward and backward"}));
}

TEST(Failure, PlansThatDifferAreComparedBeforeTheFirstStep) {
  TrainOptions other = small_options(3);
  other.recipe.lr = 0.06;
  std::vector<RunSetup> setups(3, small_setup(small_options(3)));
  setups[2] = small_setup(other);
  const std::string message = quick_message_of<comm::MismatchError>([&] {
    run_replicas(
        setups[0].options.execution,
        [&](Device& device, comm::Communicator& communicator) {
          TrainLoop loop(setups[static_cast<std::size_t>(communicator.rank())], device,
                         communicator, {});
        },
        nullptr);
  });
  EXPECT_TRUE(testing::says(message, {"--lr", "0.05", "0.06", "2"}));
}

struct Drift {
  const char* name;
  int check_replicas;
  int save_every;
  int before;  ///< the step that finds rank 1's parameters changed; steps count from 1
  int found;   ///< after this step; four make an epoch
};

class Drifted : public ::testing::TestWithParam<Drift> {};

/// Makes one of the parameters a little larger.
void nudge(Device& device, Replica& replica) {
  const View one = replica.parameters().values().slice(7, 8);
  const float nudged = std::nextafter(read_scalar(device.compute(), one), 1.0F);
  copy_from_host(device.compute(), &nudged, one);
}

TEST_P(Drifted, ReplicasAreNamed) {
  const Drift& drift = GetParam();
  const testing::TemporaryDirectory folder;
  TrainOptions options = small_options(3);
  options.execution.check_replicas = drift.check_replicas;
  options.files.save_every = drift.save_every;
  if (drift.save_every > 0) options.files.out = folder.path();
  const RunSetup setup = small_setup(options);
  int steps_done = 0;
  const std::string message = quick_message_of<comm::MismatchError>([&] {
    run_replicas(
        setup.options.execution,
        [&](Device& device, comm::Communicator& communicator) {
          TrainLoop loop(setup, device, communicator, {});
          for (int step = 1; step <= 4; ++step) {
            if (step == drift.before && communicator.rank() == 1) nudge(device, loop.replica());
            loop.step();
            if (communicator.rank() == 0) ++steps_done;
          }
        },
        nullptr);
  });
  EXPECT_EQ(steps_done, drift.found - 1);
  EXPECT_TRUE(testing::says(message, {"parameters after step " + std::to_string(drift.found),
                                      "rank 1", "ranks 0 and 2"}));
  if (drift.save_every > 0) {
    EXPECT_EQ(read_state(folder.path()).progress.step, drift.found - drift.save_every)
        << "the state of replicas that have drifted apart was kept";
  }
}

INSTANTIATE_TEST_SUITE_P(When, Drifted,
                         ::testing::Values(Drift{"InTheFirstStep", -1, 0, 1, 1},
                                           Drift{"InAnEpoch", -1, 0, 2, 4},
                                           Drift{"BeforeASave", -1, 1, 2, 2},
                                           Drift{"EverySoManySteps", 3, 0, 2, 3},
                                           Drift{"EveryStep", 1, 0, 2, 2}),
                         [](const auto& test) { return test.param.name; });

TEST(Failure, ReplicasMayDriftApartWhereNobodyCompares) {
  TrainOptions options = small_options(2);
  options.execution.check_replicas = 0;
  const auto drift = [](TrainLoop& loop, Device& device, int rank) {
    if (rank == 1) nudge(device, loop.replica());
  };
  EXPECT_TRUE(run(small_setup(options), {}, drift).result.finished);
}

/// A run of four steps on three replicas, whose first save takes longer than its time-out.
class SlowDisk : public RunListener {
 public:
  TrainOptions options() const {
    TrainOptions options = small_options(3);
    options.execution.comm_timeout = kTimeout;
    options.files.out = folder_.path();
    options.files.save_every = 2;
    return options;
  }
  void saved(const std::string& path) override {
    if (!std::filesystem::is_directory(path)) return;
    if (++saves == 1) std::this_thread::sleep_for(duration<double>(1.5 * kTimeout));
  }
  int saves = 0;

 private:
  static constexpr double kTimeout = 1.5;  // seconds: a busy machine takes its time, too
  testing::TemporaryDirectory folder_;
};

TEST(Failure, ASlowDiskIsNone) {
  SlowDisk disk;
  EXPECT_TRUE(run(disk.options(), small_data(), {&disk}).result.finished);
  EXPECT_EQ(disk.saves, 2);
}

TEST(Failure, AReplicaThatHangsAfterASlowSaveIsNamed) {
  SlowDisk disk;
  const auto hang =
      in_forward(1, 3, [](Replica&) { std::this_thread::sleep_for(milliseconds(3000)); });
  const std::string message = quick_message_of<comm::TimeoutError>(
      [&] { run(small_setup(disk.options()), {&disk}, hang); });
  EXPECT_TRUE(testing::says(message, {"rank 1", "forward and backward"}));
}

struct NotFinite {
  const char* name;
  double lr;
  int replicas;
};

class BrokenNumbers : public ::testing::TestWithParam<NotFinite> {};

TEST_P(BrokenNumbers, StopTheRunAndLeaveTheFormerState) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = small_options(GetParam().replicas);
  options.recipe.lr = GetParam().lr;
  options.files.out = folder.path();
  options.files.save_every = 1;
  struct Last : public RunListener {
    void step_done(const StepReport& report) override { step = report.step; }
    std::int64_t step = 0;
  } last;
  const std::string message =
      quick_message_of<NumbersError>([&] { run(options, small_data(), {&last}); });
  EXPECT_TRUE(testing::says(message, {"the loss is", "in step " + std::to_string(last.step + 1),
                                      "the output of layer", "--lr", "replica"}));
  EXPECT_TRUE(message.starts_with("the loss is")) << message;  // not one replica's
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
  const SavedState saved = read_state(folder.path());
  EXPECT_EQ(saved.progress.step, last.step);
  const auto model = make_model("lenet", {});
  for (const auto& tensor : load_state(saved, nn::register_model(*model), {"velocity"}).values) {
    for (const float value : tensor) ASSERT_TRUE(std::isfinite(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, BrokenNumbers,
                         ::testing::Values(NotFinite{"one", 1e12, 1}, NotFinite{"three", 1e12, 3},
                                           NotFinite{"huge", 1e30, 2}),
                         [](const auto& test) { return test.param.name; });

// All ranks meet in each batch norm, whoever has found the numbers, and whoever has no sample in a
// pass.
TEST(Failure, BrokenNumbersAreFoundWhereBatchNormSeesTheWorld) {
  for (const int stages : {1, 2}) {
    for (const int batch_size : {8, 5}) {
      SCOPED_TRACE(std::to_string(stages) + " stages, batch " + std::to_string(batch_size));
      TrainOptions options = normed(small_options(2 * stages));
      options.recipe.batch_norm = BatchStatistics::world;
      options.recipe.batch_size = batch_size;
      options.recipe.accumulate = 4;
      options.execution.stages = stages == 1 ? "1" : "conv1..block,avgpool..fc";
      options.execution.comm_timeout = 5;
      const auto enlarge = [&](TrainLoop& loop, Device& device, int rank) {
        if (rank != 2 * stages - 1) return;
        for (const nn::Parameter* parameter : loop.replica().parameters().registry().parameters) {
          if (parameter->name == "fc.weight") fill(device.compute(), 3e38F, parameter->value);
        }
      };
      EXPECT_TRUE(testing::says(
          quick_message_of<NumbersError>([&] { run(small_setup(options), {}, enlarge); }),
          {"the output of layer fc (linear)", "replica 1"}));
    }
  }
}

TEST(Failure, BrokenParametersAreNotSaved) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = small_options(2);
  options.recipe.lr = 1e39;  // infinite as a 32-bit float
  options.files.out = folder.path();
  options.max_steps = 1;
  const std::string message = quick_message_of<Error>([&] { run(options, small_data()); });
  EXPECT_TRUE(testing::says(message, {"the update of step 1", "conv1.weight", "--lr"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "state"));
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
}

TEST(Failure, ATestWithoutANumberIsNamedWithTheLastGoodLoss) {
  TrainOptions options = small_options(2);
  options.recipe.lr = 1e39;
  options.recipe.clip_norm = 1e-3;
  options.recipe.precision = Precision::bf16;
  options.execution.emulate_precision = true;
  options.recipe.epochs = 1;
  options.recipe.batch_size = small_data().train->size();  // one step: its end is the run's
  const std::string message = quick_message_of<NumbersError>([&] { run(options, small_data()); });
  EXPECT_TRUE(
      testing::says(message, {"the test loss is ", " in step 1 (epoch 1), after a loss of 2.",
                              "--precision f32, and check the data"}));
  EXPECT_EQ(message.find("--clip-norm"), std::string::npos);
}

TEST(Failure, ABrokenParameterIsNamed) {
  const auto spoil = [](TrainLoop& loop, Device& device, int rank) {
    if (rank != 1) return;
    const float nan = NAN;
    const View weight = loop.replica().parameters().registry().parameters[4]->value;
    copy_from_host(device.compute(), &nan, weight.reshaped({weight.count()}).slice(3, 4));
  };
  const std::string message =
      quick_message_of<Error>([&] { run(small_setup(small_options(3)), {}, spoil); });
  EXPECT_TRUE(testing::says(
      message, {"the loss is nan in step 1", "the parameter fc1.weight itself", "replica 1"}));
}

}  // namespace
}  // namespace ringlet::train
