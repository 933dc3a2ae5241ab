// A model's file says what it holds, so that --checkpoint needs no further flags.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

/// A finished run of the mlp.
class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", (folder_ / "run").string()}))));
  }
  Outcome evaluate(const Arguments& more) const {
    return ringlet(Arguments{"eval", "--checkpoint", (folder_ / "run").string()} + more);
  }
  const TemporaryDirectory folder_;
};

TEST_F(Checkpoint, NamesModelAndData) {
  const Outcome silent = evaluate({});
  ASSERT_TRUE(succeeds(silent));
  EXPECT_TRUE(holds(silent.out, {"model.safetensors (mlp) on synthetic/test"}));
  EXPECT_EQ(silent.out, evaluate({"--model", "mlp", "--data", "synthetic"}).out);
}

TEST_F(Checkpoint, BringsTheSizeOfDrawnData) {
  const std::string sizes = "on synthetic/test: 64 images";
  EXPECT_TRUE(holds(evaluate({}).out, {sizes}));
  const std::string alone = folder_ / "alone.safetensors";
  std::filesystem::copy_file(folder_ / "run/model.safetensors", alone);
  EXPECT_TRUE(holds(ringlet({"eval", "--checkpoint", alone}).out, {sizes}));
  EXPECT_TRUE(
      holds(ringlet({"predict", "--checkpoint", alone, "--data", "synthetic"}).out, {sizes}));
  EXPECT_EQ(evaluate({}).out, evaluate({"--synthetic-train", "8", "--synthetic-test", "64"}).out);
}

TEST_F(Checkpoint, NamesTheFlagByWhichDataDiffer) {
  EXPECT_EQ(evaluate({}).out.find("other data"), std::string::npos);
  EXPECT_TRUE(holds(evaluate({"--synthetic-test", "100"}).out,
                    {"other data than the run's: --synthetic-test 100 (the run has 64)"}));
}

TEST_F(Checkpoint, BringsItsOwnNormalisation) {
  const Outcome few = evaluate({"--synthetic-train", "8"});
  ASSERT_TRUE(succeeds(few));
  EXPECT_EQ(few.out, evaluate({"--synthetic-train", "256"}).out)
      << "the mean of whatever training images are at hand was taken";
}

TEST_F(Checkpoint, IsNotContradicted) {
  EXPECT_TRUE(fails_with(2, evaluate({"--model", "lenet"}),
                         {"--model lenet", "model.safetensors", "mlp", "leave"}));
  EXPECT_TRUE(fails_with(2, evaluate({"--no-normalize"}), {"--no-normalize", "normalised"}));
}

TEST_F(Checkpoint, OfARunThatWasStoppedIsItsLastState) {
  std::filesystem::remove(folder_ / "run/model.safetensors");
  const Outcome outcome = evaluate({});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"state/model.safetensors (mlp)"}));
}

TEST_F(Checkpoint, WhoseDataHaveGoneAsksForThem) {
  const std::filesystem::path file = folder_ / "run/model.safetensors";
  std::string bytes = read_file(file);
  const std::string name = "\"ringlet.data\":\"synthetic\"";
  const auto at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  write_file(file, bytes.replace(at, name.size(), "\"ringlet.data\":\"/no/such/\""));
  EXPECT_TRUE(fails_with(2, evaluate({}), {"/no/such/", "--data"}));
  const Outcome elsewhere = evaluate({"--data", "synthetic", "--synthetic-test", "64"});
  EXPECT_TRUE(succeeds(elsewhere));
  EXPECT_TRUE(holds(elsewhere.out, {"other data than the run's: --data synthetic"}));
}

}  // namespace
}  // namespace ringlet::testing
