// A model's file says what it holds, so that --checkpoint needs no further flags.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

/// The sizes of quick_train's data.
const Arguments kSizes{"--synthetic-train", "256", "--synthetic-test", "64"};

/// A finished run of the mlp.
class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", (folder_ / "run").string()}))));
  }
  Outcome evaluate(const Arguments& more) const {
    return ringlet(Arguments{"eval", "--checkpoint", (folder_ / "run").string()} + kSizes + more);
  }
  const TemporaryDirectory folder_;
};

TEST_F(Checkpoint, NamesModelAndData) {
  const Outcome silent = evaluate({});
  ASSERT_TRUE(succeeds(silent));
  EXPECT_TRUE(holds(silent.out, {"model.safetensors (mlp) on synthetic/test"}));
  EXPECT_EQ(silent.out, evaluate({"--model", "mlp", "--data", "synthetic"}).out);
}

TEST_F(Checkpoint, BringsItsOwnNormalisation) {
  const Arguments line{"eval", "--checkpoint",     (folder_ / "run").string(), "--synthetic-test",
                       "64",   "--synthetic-train"};
  const Outcome few = ringlet(line + Arguments{"8"});
  ASSERT_TRUE(succeeds(few));
  EXPECT_EQ(few.out, ringlet(line + Arguments{"256"}).out)
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
  EXPECT_TRUE(succeeds(evaluate({"--data", "synthetic"})));
}

}  // namespace
}  // namespace ringlet::testing
