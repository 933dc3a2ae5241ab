// Which GPUs a run lets reach each other's memory. Peer access makes a context on the other GPU,
// which takes memory there and time. Counted on the stand-in for GPUs, with four of them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/stand_in.h"
#include "tests/train/runs.h"

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

  /// What is noted while replicas on these GPUs learn.
  static std::set<std::string> notes_of(const std::vector<int>& gpus, const std::string& sync,
                                        TransportChoice transport) {
    TrainOptions options = plain_options(static_cast<int>(gpus.size()), sync);
    options.execution.devices.clear();
    for (const int gpu : gpus) options.execution.devices.push_back({DeviceKind::cuda, gpu});
    options.execution.transport = transport;
    options.max_steps = 2;
    (void)stand_in::take_notes();
    run(options, formula_splits(100));
    std::set<std::string> found;
    for (const std::string& note : stand_in::take_notes()) {
      if (note.starts_with("peer access")) found.insert(note);
    }
    return found;
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

}  // namespace
}  // namespace ringlet::train
