// --precision on the command line: a run in sixteen bits is said so, kept, resumed and evaluated.
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

Arguments narrow(const std::string& precision, const Arguments& more = {}) {
  return quick_train(Arguments{"--precision", precision, "--emulate-precision"} + more);
}

TEST(PrecisionFlag, IsToldKeptAndResumed) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  const Outcome first = ringlet(narrow("f16", {"--out", out, "--max-steps", "2"}));
  ASSERT_TRUE(succeeds(first));
  EXPECT_TRUE(holds(first.out, {"precision f16 activations and products, all else f32",
                                "0 of 2 steps skipped, the last loss times 65536"}));
  EXPECT_TRUE(holds(read_file(folder / "run/state/state.json"),
                    {R"("precision": "f16")", R"("loss_scale")", R"("good_steps": 2)"}));
  EXPECT_TRUE(holds(read_file(folder / "run/run.json"), {R"("precision": "f16")"}));
  EXPECT_TRUE(
      holds(read_file(folder / "run/metrics.jsonl"), {R"("loss_scale":65536,"skipped":0)"}));
  EXPECT_TRUE(holds(read_file(folder / "run/config.toml"),
                    {"precision = \"f16\"", "emulate-precision = true"}));
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", out}), {"--emulate-precision"}));
  EXPECT_TRUE(fails_with(
      2, ringlet({"train", "--resume", out, "--emulate-precision", "--precision", "bf16"}),
      {"--precision bf16 (the run has --precision f16)"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out, "--emulate-precision"})));
}

TEST(PrecisionFlag, EvaluatesInF32UnlessAsked) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(narrow("bf16", {"--out", out}))));
  const Outcome wide = ringlet({"eval", "--checkpoint", out});
  const Outcome narrowed =
      ringlet({"eval", "--checkpoint", out, "--precision", "bf16", "--emulate-precision"});
  ASSERT_TRUE(succeeds(wide));
  ASSERT_TRUE(succeeds(narrowed));
  EXPECT_NE(wide.out, narrowed.out);
  EXPECT_TRUE(fails_with(2, ringlet({"eval", "--checkpoint", out, "--precision", "bf16"}),
                         {"--emulate-precision"}));
  const std::string bag = checkout("docs/pictures/bag.png");
  EXPECT_TRUE(succeeds(
      ringlet({"predict", "--checkpoint", out, "--precision", "f16", "--emulate-precision", bag})));
}

TEST(PrecisionFlag, AutoIsToldKeptAndResumed) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  const Arguments automatic{"--precision", "auto", "--emulate-precision"};
  const Outcome first =
      ringlet(quick_train(automatic + Arguments{"--out", out, "--max-steps", "2"}));
  ASSERT_TRUE(succeeds(first));
  const bool narrow =
      first.out.find("chosen    --precision bf16: bf16 takes ") != std::string::npos;
  const std::string taken = narrow ? "bf16" : "f32";
  EXPECT_TRUE(holds(first.out, {"chosen    --precision " + taken + ": bf16 takes "}));
  EXPECT_TRUE(holds(read_file(folder / "run/config.toml"), {"precision = \"" + taken + "\""}));
  const bool kept = read_file(folder / "run/state/state.json").find(R"("precision": "bf16")") !=
                    std::string::npos;
  EXPECT_EQ(kept, narrow);  // a state says nothing of f32
  const Outcome second = ringlet(Arguments{"train", "--resume", out} + automatic);
  ASSERT_TRUE(succeeds(second));
  EXPECT_EQ(second.out.find("chosen    --precision"), std::string::npos);

  const std::string named = folder / "named";
  ASSERT_TRUE(succeeds(ringlet(quick_train(
      {"--precision", taken, "--emulate-precision", "--out", named, "--max-steps", "2"}))));
  ASSERT_TRUE(succeeds(ringlet({"train", "--resume", named, "--emulate-precision"})));
  EXPECT_TRUE(read_file(folder / "run/state/model.safetensors") ==
              read_file(folder / "named/state/model.safetensors"));
}

TEST(PrecisionFlag, AutoIsOneTypeInAllProcessesAndNoStates) {
  const TemporaryDirectory folder;
  const Outcome two =
      ringlet(quick_train({"--precision", "auto", "--emulate-precision", "--processes", "2"}));
  ASSERT_TRUE(succeeds(two));
  EXPECT_TRUE(holds(two.out, {"chosen    --precision "}));
  EXPECT_EQ(two.out.find("chosen    --precision "), two.out.rfind("chosen    --precision "));
  const Outcome printed = ringlet({"train", "--precision", "auto", "--print-config"});
  ASSERT_TRUE(succeeds(printed));
  EXPECT_TRUE(holds(printed.out, {"precision = \"auto\""}));
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--sweep", "precision=f32,auto"}),
                         {"--precision auto: the runs of a sweep"}));
  for (const Arguments& other : {Arguments{"eval", "--checkpoint", folder / "run"},
                                 Arguments{"bench", "train"}, Arguments{"pipeline"}}) {
    EXPECT_TRUE(fails_with(2, ringlet(other + Arguments{"--precision", "auto"}),
                           {"'auto' is not one of f32, tf32, bf16, f16"}));
  }
}

// A state says nothing of f32, as older ones say nothing of --tf32.
TEST(PrecisionFlag, Tf32MayBeTakenUpByAStateThatDoesNotSayIt) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--max-steps", "1"}))));
  EXPECT_EQ(read_file(folder / "run/state/state.json").find("precision"), std::string::npos);
  const Outcome second = ringlet({"train", "--resume", out, "--tf32", "--max-steps", "2"});
  ASSERT_TRUE(succeeds(second));
  EXPECT_TRUE(holds(second.out, {"factors rounded to 11 bits"}));
  EXPECT_TRUE(holds(read_file(folder / "run/state/state.json"), {R"("precision": "tf32")"}));
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", out, "--precision", "f32"}),
                         {"--precision f32 (the run has --precision tf32)"}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out, "--precision", "tf32"})));
}

}  // namespace
}  // namespace ringlet::testing
