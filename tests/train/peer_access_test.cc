// Which GPUs a run makes a context on, and lets reach each other's memory, which makes one as well.
// A context takes memory and time. Counted on the stand-in for GPUs, with four of them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/arithmetic.h"
#include "train/telemetry/run_record.h"

namespace ringlet::train {
namespace {

class CudaPeerAccess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* said = std::getenv(kGpus)) before_ = said;  // NOLINT(concurrency-mt-unsafe)
    setenv(kGpus, "4", 1);                                      // NOLINT(concurrency-mt-unsafe)
  }
  void TearDown() override {
    if (before_) {
      setenv(kGpus, before_->c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    } else {
      unsetenv(kGpus);  // NOLINT(concurrency-mt-unsafe)
    }
  }

  static TrainOptions on(const std::vector<int>& gpus, const std::string& sync) {
    TrainOptions options = plain_options(static_cast<int>(gpus.size()), sync);
    options.execution.devices.clear();
    for (const int gpu : gpus) options.execution.devices.push_back({DeviceKind::cuda, gpu});
    options.max_steps = 2;
    return options;
  }
  /// What of this kind is noted while `body` runs.
  template <class Body>
  static std::set<std::string> notes_of(const std::string& kind, Body body) {
    (void)stand_in::take_notes();
    body();
    std::set<std::string> found;
    for (const std::string& note : stand_in::take_notes()) {
      if (note.starts_with(kind)) found.insert(note);
    }
    return found;
  }
  /// Which GPUs reach which while replicas on these learn.
  static std::set<std::string> notes_of(const std::vector<int>& gpus, const std::string& sync,
                                        TransportChoice transport) {
    TrainOptions options = on(gpus, sync);
    options.execution.transport = transport;
    return notes_of("peer access", [&] { run(options, formula_splits(100)); });
  }

 private:
  static constexpr const char* kGpus = "RINGLET_STAND_IN_GPUS";
  std::optional<std::string> before_;
};

TEST_F(CudaPeerAccess, IsBetweenTheGpusOfARunAlone) {
  EXPECT_EQ(notes_of({0, 1, 3}, "two-shot", TransportChoice::local),
            (std::set<std::string>{"peer access 0 1", "peer access 0 3", "peer access 1 0",
                                   "peer access 1 3", "peer access 3 0", "peer access 3 1"}));
}

TEST_F(CudaPeerAccess, IsAskedForByNobodyWhoReadsNoOthersMemory) {
  EXPECT_EQ(notes_of({1}, "ring", TransportChoice::automatic), std::set<std::string>());
  EXPECT_EQ(notes_of({2, 2}, "two-shot", TransportChoice::local), std::set<std::string>());
  EXPECT_EQ(notes_of({0, 3}, "ring", TransportChoice::nccl), std::set<std::string>());
}

// run.json names all GPUs, and exact mode compares their names over the ranks.
TEST_F(CudaPeerAccess, ARunMakesContextsOnItsOwnGpusAlone) {
  const ringlet::testing::TemporaryDirectory folder;
  TrainOptions options = on({1, 3}, "doubling");
  options.recipe.exact = true;
  EXPECT_EQ(notes_of("context",
                     [&] {
                       const RunSetup setup = make_run_setup(options, formula_splits(64), 2);
                       RunRecord record(folder / "run.json", setup);
                       run(setup, {&record});
                       (void)arithmetic_here(options.execution, Precision::f32, "");
                     }),
            (std::set<std::string>{"context 1", "context 3"}));
}

}  // namespace
}  // namespace ringlet::train
