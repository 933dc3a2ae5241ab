// `ringlet pipeline`: its table, its answer, and its file.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

Outcome pipeline(const Arguments& flags) {
  return ringlet(Arguments{"pipeline", "--model", "resnet20"} + flags);
}

TEST(Pipeline, SaysWhatComesOfACut) {
  const TemporaryDirectory folder;
  const std::string file = folder / "pipeline.json";
  const Outcome outcome =
      pipeline({"--stages", "3", "--balance", "planned", "--micro-batches", "4", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"resnet20, 3 x 32 x 32, batch 128, f32, lanes, costs planned\n",
                                  "  % F / B  ", "\n2      ", " .. fc ",
                                  "1f1b, 4 micro-batches of 32: bubble ", "x of one device; naive ",
                                  "\nall stages together fit this machine's memory: "}));
  const nlohmann::json json = json_or_discarded(read_file(file));
  ASSERT_EQ(json.at("stages").size(), 3U);
  EXPECT_EQ(json.at("fits"), true);
  EXPECT_EQ(json.at("cuts").size(), 2U);
  EXPECT_GT(json.at("speedup").get<double>(), 1.5);
  EXPECT_TRUE(fails_with(2, pipeline({"--balance", "planned", "--json", file}), {file, "--force"}));
}

TEST(Pipeline, MeasuresUnits) {
  const TemporaryDirectory folder;
  const std::string file = folder / "pipeline.json";
  const Outcome outcome = pipeline({"--stages", "conv1..layer1,layer2..fc", "--pipeline", "gpipe",
                                    "--batch-size", "32", "--link", "1G", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"costs measured on cpu:0, 1 thread", "  ms F / B  ",
                                  "gpipe, 2 micro-batches of 16: bubble ", " ms a step; naive "}));
  const nlohmann::json json = json_or_discarded(read_file(file));
  EXPECT_EQ(json.at("stages")[0].at("held"), 2);
  EXPECT_GT(json.at("stages")[1].at("backward_seconds").get<double>(), 0);
  const auto& cut = json.at("cuts")[0];
  EXPECT_NEAR(cut.at("activation_seconds").get<double>(),
              1e-9 * cut.at("activation_bytes").get<double>(), 1e-9);
}

TEST(Pipeline, TakesDevicesThatAreNotThere) {
  const Outcome outcome = pipeline({"--stages", "2", "--replicas", "2", "--device", "cuda",
                                    "--balance", "planned", "--memory", "1G"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {", 2 replicas, f32, nchw, ", "  cuda:0, cuda:1  ",
                                  "  cuda:2, cuda:3  ", "8 micro-batches of 8: ",
                                  "\neach stage fits its device: stage 0 fills most of it, "}));
}

TEST(Pipeline, SaysThatAStageDoesNotFit) {
  const Outcome outcome =
      pipeline({"--stages", "conv1..layer1,layer2..fc", "--balance", "planned", "--memory", "4M"});
  EXPECT_TRUE(fails_with(1, outcome,
                         {"does not fit: stage 0 (conv1 .. layer1) needs ",
                          " and its device has 4 MiB; ", "take more stages"}));
  EXPECT_TRUE(holds(outcome.out, {"conv1 .. layer1"}));
}

}  // namespace
}  // namespace ringlet::testing
