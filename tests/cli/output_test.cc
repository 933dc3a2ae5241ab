// Places that cannot be written, runs that must not be overwritten, and numbers that break: an
// error in one line, and the former state still loads. Nothing here relies on permissions: tests
// may run as root.
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Flags to go on with a quick run in `out`.
Arguments resume(const fs::path& out, const Arguments& more = {}) {
  return Arguments{"train", "--resume", out.string()} + more;
}

TEST(Out, WhereAFileLiesIsRefused) {
  const TemporaryDirectory folder;
  write_file(folder / "file", "something of the user's");
  for (const char* out : {"file", "file/below"}) {
    EXPECT_TRUE(
        fails_with(1, ringlet(quick_train({"--out", folder / out})), {"file", "choose another"}));
  }
  EXPECT_EQ(read_file(folder / "file"), "something of the user's");
}

TEST(Out, ThatNobodyCanWriteIsRefused) {
  const Outcome outcome = ringlet(quick_train({"--out", "/proc/ringlet"}));
  EXPECT_TRUE(fails_with(1, outcome, {"/proc/ringlet"}));
  EXPECT_EQ(outcome.out, "") << "found out before the training";
}

TEST(Out, OfAnotherRunNeedsForce) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string model = read_file(folder / "run/model.safetensors");
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--out", out, "--seed", "2"})),
                         {out, "--resume", "--force"}));
  EXPECT_EQ(model, read_file(folder / "run/model.safetensors"));
  EXPECT_TRUE(succeeds(ringlet(quick_train({"--out", out, "--seed", "2", "--force"}))));
  EXPECT_NE(model, read_file(folder / "run/model.safetensors"));
}

TEST(Out, OfAThirdRunNeedsForceWhenResumingToo) {
  const TemporaryDirectory folder;
  const std::string a = folder / "a";
  const std::string b = folder / "b";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", a}))));
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", b}))));
  EXPECT_TRUE(fails_with(2, ringlet(resume(a, {"--out", b})), {b, "--force"}));
  EXPECT_TRUE(succeeds(ringlet(resume(a, {"--out", a + "/"}))));
}

TEST(Out, ThatFillsLeavesTheFormerState) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  const std::string former = read_file(out / "state/model.safetensors");
  const Outcome full = ringlet(resume(out), {.file_size_limit = 100'000});
  EXPECT_TRUE(fails_with(1, full, {"model.safetensors", "File too large", "ulimit -f"}));
  EXPECT_EQ(former, read_file(out / "state/model.safetensors"));
  for (const auto& entry : fs::directory_iterator(out)) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << "half-written " << entry;
  }
  EXPECT_TRUE(succeeds(ringlet(resume(out))));
}

TEST(Metrics, OnAFullDiskAreNamed) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--metrics", "/dev/full"})),
                         {"--metrics /dev/full", "No space left"}));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(Metrics, WhereAFolderLiesAreRefused) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--metrics", folder.path().string()})),
                         {folder.path().string()}));
}

TEST(Trace, NeverReplacesADevice) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--trace", "/dev/full"})),
                         {"/dev/full", "no plain file"}));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(Resume, WithoutARunIsRefused) {
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", "/no/such"}), {"/no/such", "--out"}));
}

TEST(Resume, WithAContradictionNamesBothValues) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  EXPECT_TRUE(fails_with(2, ringlet(resume(out, {"--lr", "3", "--exact"})),
                         {"--lr 3", "--lr 0.1", "--exact", "--init"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(resume(out, {"--model", "lenet"})), {"--model lenet", "--model mlp"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(resume(out, {"--synthetic-train", "512", "--synthetic-test", "9"})),
                 {"--synthetic-train 512 (the run has 256)", "--synthetic-test 9", "has 64"}));
  EXPECT_TRUE(succeeds(ringlet(resume(out, {"--lr", "0.1", "--model", "mlp"}))));
}

TEST(Resume, FromADamagedStateIsRefused) {
  const TemporaryDirectory folder;
  const fs::path out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--out", out.string()}))));
  const std::string json = read_file(out / "state/state.json");
  write_file(out / "state/state.json", json.substr(0, json.size() / 2));
  EXPECT_TRUE(fails_with(1, ringlet(resume(out)), {"state.json"}));
  write_file(out / "state/state.json", json);
  fs::resize_file(out / "state/optimizer.safetensors", 1000);
  EXPECT_TRUE(fails_with(1, ringlet(resume(out)), {"optimizer.safetensors"}));
}

TEST(Loss, ThatBreaksNamesStepAndLayer) {
  const TemporaryDirectory folder;
  const Outcome outcome =
      ringlet(quick_train({"--lr", "1e20", "--schedule", "constant", "--out", folder / "run"}));
  EXPECT_TRUE(fails_with(1, outcome, {"the loss is", "in step ", "(epoch 1)", "fc", "--lr"}));
  EXPECT_EQ(outcome.err.find("-nan"), std::string::npos);
}

}  // namespace
}  // namespace ringlet::testing
