// PyTorch's numbers (tests/oracle/make_reference.py) from ranks in several processes.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/json_text.h"
#include "comm/transport/gloo/gloo_transport.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"
#include "tests/oracle/formula_data.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/support/testdata.h"
#include "train/files/safetensors.h"

namespace ringlet::testing {
namespace {

const std::string kFolder = testdata("oracle/");
constexpr std::uint32_t kOracleSteps = 20, kBatch = 64, kTestSamples = 40;
constexpr double kLossTolerance = 1e-5, kFinalTolerance = 1e-4;

/// Samples [first, first + count) of the formula, as a pair of IDX files.
void write_formula(const std::filesystem::path& folder, const std::string& which,
                   std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t kSide = oracle::kFormulaSide;
  std::string images = idx_header(8, {count, kSide, kSide}), labels = idx_header(8, {count});
  for (std::uint32_t i = first; i < first + count; ++i) {
    labels += static_cast<char>(oracle::formula_label(i));
    for (std::uint32_t pixel = 0; pixel < kSide * kSide; ++pixel) {
      images += static_cast<char>(oracle::formula_pixel(i, pixel / kSide, pixel % kSide));
    }
  }
  write_file(folder / (which + "-images-idx3-ubyte"), images);
  write_file(folder / (which + "-labels-idx1-ubyte"), labels);
}

struct Case {
  std::string processes, replicas, sync, layout, accumulate, transport;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.processes << "x" << c.replicas << "_" << c.sync << "_" << c.layout << "_accumulate"
       << c.accumulate << "_" << c.transport;
}

class ProcessesOracle : public ::testing::TestWithParam<Case> {};

TEST_P(ProcessesOracle, LossesAndParametersArePyTorchs) {
  const Case& c = GetParam();
  if (c.transport == "gloo" && !comm::has_gloo()) {
    GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  }
  const TemporaryDirectory folder;
  write_formula(folder.path(), "train", 0, kOracleSteps * kBatch);
  write_formula(folder.path(), "t10k", kOracleSteps * kBatch, kTestSamples);
  const auto expected = parse_json(read_file(kFolder + "reference.json")).at("formula");
  const std::string metrics = folder / "metrics", out = folder / "out";
  ASSERT_TRUE(succeeds(ringlet({"train",
                                "--model",
                                "lenet",
                                "--data",
                                folder.path().string(),
                                "--init",
                                kFolder + "init.safetensors",
                                "--batch-size",
                                std::to_string(kBatch),
                                "--epochs",
                                "1",
                                "--lr",
                                expected.at("lr").dump(),
                                "--momentum",
                                "0.9",
                                "--no-nesterov",
                                "--weight-decay",
                                "0",
                                "--schedule",
                                "constant",
                                "--no-shuffle",
                                "--no-normalize",
                                "--bucket-kb",
                                "16",
                                "--processes",
                                c.processes,
                                "--replicas",
                                c.replicas,
                                "--sync",
                                c.sync,
                                "--layout",
                                c.layout,
                                "--accumulate",
                                c.accumulate,
                                "--transport",
                                c.transport,
                                "--metrics",
                                metrics,
                                "--out",
                                out})));

  std::istringstream lines(read_file(metrics));
  std::size_t steps = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = parse_json(line);
    if (json.at("kind") != "step") continue;
    ASSERT_LT(steps, expected.at("losses").size());
    EXPECT_NEAR(json.at("loss").get<double>(), expected.at("losses")[steps].get<double>(),
                kLossTolerance)
        << "step " << steps + 1;
    ++steps;
  }
  EXPECT_EQ(steps, kOracleSteps);

  const train::SafetensorsFile model(out + "/model.safetensors");
  const train::SafetensorsFile reference(kFolder + "final.safetensors");
  for (const char* layer : {"conv1", "conv2", "fc1", "fc2"}) {
    for (const char* part : {".weight", ".bias"}) {
      const auto actual = model.f32(std::string(layer) + part);
      const auto wanted = reference.f32(std::string(layer) + part);
      EXPECT_LT(test::relative_l2(std::vector<float>(actual.begin(), actual.end()),
                                  std::vector<float>(wanted.begin(), wanted.end())),
                kFinalTolerance)
          << layer << part;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Splits, ProcessesOracle,
                         ::testing::Values(Case{"2", "1", "ring", "lanes", "1", "shm"},
                                           Case{"2", "1", "naive", "nchw", "2", "gloo"},
                                           Case{"3", "1", "ring", "nchw", "1", "shm"},
                                           Case{"2", "2", "ring", "nchw", "1", "shm"},
                                           Case{"2", "2", "doubling", "lanes", "2", "gloo"},
                                           Case{"4", "1", "doubling", "nchw", "1", "shm"},
                                           Case{"4", "1", "naive", "lanes", "1", "shm"}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ringlet::testing
