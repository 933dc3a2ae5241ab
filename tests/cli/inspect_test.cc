// ringlet inspect, as its users see it.
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/data/idx_files.h"

namespace ringlet::testing {
namespace {

TEST(InspectCommand, ShowsAllThatARunLeaves) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", trace = folder / "t.json", lines = folder / "m.jsonl";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--trace", trace, "--metrics", lines}))));
  const Outcome shown = ringlet({"inspect", out, trace, lines, out + "/model.safetensors"});
  ASSERT_TRUE(succeeds(shown));
  EXPECT_TRUE(holds(shown.out, {": run\n", "can be resumed", "yes", "state/state.json",
                                ": Chrome trace\n", "in collectives", ": metrics\n",
                                "best accuracy", ": safetensors\n", "fc1.weight"}));
  const Outcome json = ringlet({"inspect", "--json", out, trace});
  ASSERT_TRUE(succeeds(json));
  const auto documents = parse_json(json.out);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["steps_done"], 4);
  EXPECT_EQ(documents[0]["can_be_resumed"], true);
  EXPECT_EQ(documents[1]["format"], "Chrome trace");
}

TEST(InspectCommand, ShowsTheOthersWhereOneIsDamaged) {
  const TemporaryDirectory folder;
  write_file(folder / "whole", idx({2, 3, 4}));
  write_file(folder / "cut", idx({2, 3, 4}).substr(0, 20));
  const Outcome outcome = ringlet({"inspect", folder / "cut", folder / "whole"});
  EXPECT_TRUE(fails_with(1, outcome, {"cut: truncated: expected 40 bytes, found 20"}));
  EXPECT_TRUE(holds(outcome.out, {"2 images of 3 x 4"}));
}

TEST(InspectCommand, KnowsFashionMnist) {
  const std::string file = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const Outcome outcome = ringlet({"inspect", file, "--show", "1"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"60000 images of 28 x 28", "0.286041", "0.353024", "%%%%"}));
}

}  // namespace
}  // namespace ringlet::testing
