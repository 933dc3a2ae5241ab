// Where a GPU has a fault in something that can be switched off (base/switches.h), tests that use
// it are red, and green with it switched off: so scripts/gpu_check can narrow a fault down. Each
// fault is the stand-in's (tests/cuda_stand_in/faults.h), the tests are those of this program.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>

#include "base/switches.h"
#include "tests/train/stand_in_nodes.h"

namespace ringlet::train {
namespace {

struct Fault {
  const char* name;      ///< in faults.h
  const char* switches;  ///< the variable that turns off what it is in
  const char* tests;     ///< that use it
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

constexpr const char* kOracle = "Cuda/Oracle.*cuda_graph_1_nchw_accumulate1";
constexpr const char* kNarrow =
    "Cuda/PrecisionOracle.IsPyTorchRoundedAtTheSamePoints/resnet20_bf16_1_nhwc";
constexpr const char* kNcclReplays = "CudaNcclTraining.ProcessesReplayWholeStepsAsGraphs";
constexpr Fault kFaults[] = {{"early-launches", kEarlyLaunches, kOracle},
                             {"captures", kCaptures, kOracle},
                             {"branches", kBranches, kOracle},
                             {"fused", kFused, kOracle},
                             {"narrow-sums", kNarrowSums, kNarrow},
                             {"nccl-memory", kNcclMemory, kNcclReplays},
                             {"nccl-threads", kNcclThreads, kNcclReplays}};

/// Whether these tests of this program are green. `variables`: "NAME=value NAME=value".
bool are_green(const std::string& tests, const std::string& variables) {
  std::array<char, 4096> program{};
  const ssize_t length = readlink("/proc/self/exe", program.data(), program.size() - 1);
  EXPECT_GT(length, 0);
  const std::string command = "RINGLET_STAND_IN_GPUS=2 " + variables + " '" + program.data() +
                              "' --gtest_filter='" + tests + "' >/dev/null 2>&1";
  return system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
}

class CudaFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(CudaFaults, AreNarrowedDownByTheirSwitch) {
  if (!on_stand_in()) GTEST_SKIP() << "only the stand-in has faults";
  const std::string fault = std::string("RINGLET_STAND_IN_FAULT=") + GetParam().name;
  EXPECT_FALSE(are_green(GetParam().tests, fault));
  EXPECT_TRUE(are_green(GetParam().tests, fault + " " + GetParam().switches + "=off"));
}

INSTANTIATE_TEST_SUITE_P(Of, CudaFaults, ::testing::ValuesIn(kFaults), [](const auto& param) {
  std::string name = param.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ringlet::train
