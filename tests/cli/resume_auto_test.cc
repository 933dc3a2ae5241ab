// --resume auto: the same line begins a run and goes on with it, from the last state that is whole.
// And of several processes only the first has to find a run's files.
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Runs in a folder, four steps long, that save their state after each step.
class ResumeAuto : public ::testing::Test {
 protected:
  std::string out(const std::string& name = "out") const { return (folder_ / name).string(); }
  Outcome go(const Arguments& changes = {}) const {
    return ringlet(line(Arguments{"--out", out()} + changes));
  }
  static Arguments line(const Arguments& changes) {
    return quick_train(Arguments{"--exact", "--save-every", "1", "--resume", "auto"} + changes);
  }
  /// The bytes that an undisturbed run writes.
  std::string undisturbed() const {
    EXPECT_TRUE(
        succeeds(ringlet(quick_train({"--exact", "--force", "--out", out("undisturbed")}))));
    return read_file(out("undisturbed") + "/model.safetensors");
  }
  /// Whether OUT has that model.
  bool is_undisturbed() const { return read_file(out() + "/model.safetensors") == undisturbed(); }
  void damage(const std::string& file) const {
    write_file(folder_ / ("out/" + file), read_file(folder_ / ("out/" + file)).substr(0, 100));
  }
  TemporaryDirectory folder_;
};

TEST_F(ResumeAuto, BeginsAndGoesOn) {
  const Outcome first = go({"--max-steps", "2"});
  EXPECT_TRUE(succeeds(first));
  EXPECT_TRUE(holds(first.out, {"resume    no state is there, so the run begins"}));
  const Outcome second = go({"--replicas", "2"});
  EXPECT_TRUE(succeeds(second));
  EXPECT_TRUE(holds(second.out, {"resumed   after step 2"}));
  EXPECT_EQ(second.out.find("no state"), std::string::npos);
  EXPECT_TRUE(is_undisturbed());
  const Outcome third = go();
  EXPECT_TRUE(succeeds(third));
  EXPECT_TRUE(holds(third.out, {"nothing was left to do: 4 of 4 steps were done before"}));
}

TEST_F(ResumeAuto, PassesOverABrokenState) {
  ASSERT_TRUE(succeeds(go({"--max-steps", "3"})));
  damage("state/optimizer.safetensors");
  const Outcome outcome = go();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(holds(outcome.err, {"ringlet: warning: ", "state/optimizer.safetensors",
                                  "goes on from the state before that, after step 2"}));
  EXPECT_TRUE(holds(outcome.out, {"resumed   after step 2"}));
  EXPECT_TRUE(is_undisturbed());
  EXPECT_EQ(read_file(out() + "/state.broken/optimizer.safetensors").size(), 100U);
}

// A disk that flips a bit, and a file of the state before: all can be read, and are not the state.
TEST_F(ResumeAuto, PassesOverAStateThatIsNotAsItWasSaved) {
  const std::string state = out() + "/state", optimizer = "/optimizer.safetensors";
  const auto flip = [](const std::string& file) {
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] ^= 1;
    write_file(file, bytes);
  };
  const std::function<void()> damages[] = {[&] { flip(state + "/model.safetensors"); },
                                           [&] {
                                             fs::copy(out() + "/state.before" + optimizer,
                                                      state + optimizer,
                                                      fs::copy_options::overwrite_existing);
                                           }};
  for (const auto& damage : damages) {
    fs::remove_all(out());
    ASSERT_TRUE(succeeds(go({"--max-steps", "3"})));
    damage();
    EXPECT_TRUE(fails_with(
        1,
        ringlet({"train", "--resume", out(), "--synthetic-train", "256", "--synthetic-test", "64"}),
        {"is not the file that was saved", "--resume auto --out " + out()}));
    const Outcome outcome = go();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(holds(outcome.err, {"ringlet: warning: ", "is not the file that was saved",
                                    "goes on from the state before that, after step 2"}));
    EXPECT_TRUE(is_undisturbed());
  }
}

TEST_F(ResumeAuto, BeginsWhereAStartWasEndedBeforeItsFirstState) {
  ASSERT_TRUE(succeeds(go({"--max-steps", "1", "--metrics", folder_ / "more.jsonl"})));
  fs::remove_all(folder_ / "out/state");
  fs::remove(folder_ / "out/model.safetensors");
  const Outcome outcome = go({"--metrics", folder_ / "more.jsonl"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"so the run begins"}));
  EXPECT_TRUE(is_undisturbed());
  for (const char* state : {"state", "state.before"}) fs::remove_all(folder_ / "out" / state);
  // A model alone is another run's.
  EXPECT_TRUE(fails_with(2, go(), {"holds another run", "--force"}));
  EXPECT_TRUE(fs::exists(folder_ / "out/model.safetensors"));
}

TEST_F(ResumeAuto, TakesInitForTheBeginningAlone) {
  undisturbed();
  const Arguments init{"--init", out("undisturbed") + "/model.safetensors"};
  ASSERT_TRUE(succeeds(go(init + Arguments{"--max-steps", "2"})));
  ASSERT_TRUE(succeeds(go(init)));
  ASSERT_TRUE(succeeds(ringlet(quick_train(Arguments{"--exact", "--out", out("whole")} + init))));
  EXPECT_TRUE(read_file(out() + "/model.safetensors") ==
              read_file(out("whole") + "/model.safetensors"));
  EXPECT_TRUE(fails_with(2, ringlet(Arguments{"train", "--resume", out()} + init), {"--init"}));
}

TEST_F(ResumeAuto, RefusesOtherSettings) {
  ASSERT_TRUE(succeeds(go({"--max-steps", "2"})));
  EXPECT_TRUE(fails_with(2, go({"--batch-size", "32"}), {"--batch-size 32", "64"}));
}

TEST_F(ResumeAuto, GoesOnInProcesses) {
  ASSERT_TRUE(succeeds(go({"--processes", "2", "--max-steps", "3"})));
  damage("state/model.safetensors");
  const Outcome outcome = go({"--processes", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning"), outcome.err.rfind("warning"));
  EXPECT_TRUE(is_undisturbed());
}

/// Two processes, of which the second runs in an empty folder and so finds nothing.
class OneDisk : public ResumeAuto {
 protected:
  OneDisk() {
    fs::create_directory(folder_ / "here");
    fs::create_directory(folder_ / "elsewhere");
  }
  static std::map<std::string, std::string> environment_of(int rank) {
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", "2"},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", "disk-" + std::to_string(::getpid())}};
  }
  std::pair<Outcome, Outcome> both(const Arguments& line) const {
    const Arguments all = line + Arguments{"--processes"};
    Program second(all, {.environment = environment_of(1), .folder = folder_ / "elsewhere"});
    const Outcome first =
        ringlet(all, {.environment = environment_of(0), .folder = folder_ / "here"});
    return {first, second.wait()};
  }
};

TEST_F(OneDisk, IsEnoughToResume) {
  for (const Arguments& resume : {Arguments{"train", "--resume", "run"}, line({"--out", "run"})}) {
    fs::remove_all(folder_ / "here/run");
    const Arguments begin = line({"--out", "run", "--max-steps", "2"});
    ASSERT_TRUE(succeeds(ringlet(begin, {.folder = folder_ / "here"})));
    const auto [first, second] = both(resume);
    EXPECT_TRUE(succeeds(first));
    EXPECT_TRUE(succeeds(second));
    EXPECT_TRUE(holds(first.out, {"2 in 2 processes", "resumed   after step 2"}));
    EXPECT_TRUE(read_file(folder_ / "here/run/model.safetensors") == undisturbed());
    EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  }
}

TEST_F(OneDisk, IsEnoughForAModel) {
  undisturbed();
  fs::rename(folder_ / "undisturbed", folder_ / "here/run");
  const Arguments eval{"eval", "--checkpoint", "run"};
  const auto [first, second] = both(eval);
  EXPECT_TRUE(succeeds(first));
  EXPECT_TRUE(succeeds(second));
  EXPECT_EQ(first.out, ringlet(eval, {.folder = folder_ / "here"}).out);
  const auto [begun, other] =
      both(quick_train({"--init", "run/model.safetensors", "--out", "next"}));
  EXPECT_TRUE(succeeds(begun));
  EXPECT_TRUE(succeeds(other));
}

TEST_F(OneDisk, EndsAllWithOneLine) {
  for (const Arguments& line : {Arguments{"train", "--resume", "nowhere"},
                                Arguments{"eval", "--checkpoint", "nowhere.safetensors"}}) {
    const auto [first, second] = both(line);
    EXPECT_TRUE(fails_with(1, first, {"nowhere"}));
    EXPECT_EQ(second.code, 1);
    EXPECT_EQ(second.out + second.err, "");
  }
}

}  // namespace
}  // namespace ringlet::testing
