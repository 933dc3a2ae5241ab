// Flags from files and from the environment: which counts, what is said of wrong ones, and that a
// run's own configuration repeats it.
#include "app/cli/config.h"

#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

const char* const kQuick =
    "data = \"synthetic\"\nsynthetic-train = 256\nsynthetic-test = 64\nmodel = \"mlp\"\n"
    "epochs = 1\nbatch-size = 64\n";

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      app::parse_config("", "f");
    } catch (const app::ConfigError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  /// A file with this text.
  std::string file(const std::string& text) {
    std::string name = folder_ / ("config" + std::to_string(++files_) + ".toml");
    std::ofstream(name) << text;
    return name;
  }
  std::string in_folder(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_;
  int files_ = 0;
};

/// What --print-config says of the flag.
std::string value_of(const std::string& key, const Outcome& outcome) {
  EXPECT_TRUE(succeeds(outcome));
  const auto at = outcome.out.find("\n" + key + " = ");
  if (at == std::string::npos) return "";
  const auto begin = at + key.size() + 4;
  return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
}

TEST_F(ConfigFile, CountsLessThanTheEnvironmentAndThatLessThanTheCommandLine) {
  const Arguments line{"train", "--print-config", "--config", file("lr = 0.3\nthreads = 2\n")};
  const ProgramOptions environment{.environment = {{"RINGLET_LR", "0.4"}}};
  EXPECT_EQ(value_of("lr", ringlet({"train", "--print-config"})), "0.1");
  EXPECT_EQ(value_of("lr", ringlet(line)), "0.3");
  EXPECT_EQ(value_of("lr", ringlet(line, environment)), "0.4");
  EXPECT_EQ(value_of("lr", ringlet(line + Arguments{"--lr", "0.5"}, environment)), "0.5");
  EXPECT_EQ(value_of("threads", ringlet(line, environment)), "2");
  EXPECT_EQ(value_of("lr", ringlet({"train", "--print-config", "--model", "lenet-d2l"})), "0.2");
}

TEST_F(ConfigFile, IsSilencedByWhatItCannotBeCombinedWith) {
  const std::string devices = file("devices = [\"cpu:0\", \"cpu:0\"]\nnesterov = true\n");
  const Outcome outcome =
      ringlet({"train", "--print-config", "--config", devices, "--replicas", "4", "--no-nesterov"});
  EXPECT_EQ(value_of("replicas", outcome), "4");
  EXPECT_EQ(value_of("devices", outcome), "");
  EXPECT_EQ(value_of("nesterov", outcome), "false");
  EXPECT_EQ(value_of("devices", ringlet({"train", "--print-config", "--config", devices})),
            "[\"cpu:0\", \"cpu:0\"]");
}

TEST_F(ConfigFile, SwitchesOffAsWellAsOn) {
  const std::string both = file("exact = true\nno-normalize = false\nmodel = \"lenet-d2l\"\n");
  const Arguments line{"train", "--print-config", "--config", both};
  EXPECT_EQ(value_of("exact", ringlet(line)), "true");
  EXPECT_EQ(value_of("no-normalize", ringlet(line)), "false") << "the model's own is true";
  const ProgramOptions off{.environment = {{"RINGLET_EXACT", "off"}, {"RINGLET_CONFIG", both}}};
  EXPECT_EQ(value_of("exact", ringlet({"train", "--print-config"}, off)), "false");
}

TEST_F(ConfigFile, KeepsThatNothingIsKept) {
  const ProgramOptions unset{.environment = {{"RINGLET_NO_OUT", ""}}};
  const Arguments line{"train", "--print-config"};
  EXPECT_EQ(value_of("no-out", ringlet(line, unset)), "") << "that is no setting of a usual run";
  const Outcome printed = ringlet(line + Arguments{"--no-out"}, unset);
  EXPECT_EQ(value_of("no-out", printed), "true");
  const Arguments again = line + Arguments{"--config", file(printed.out)};
  EXPECT_EQ(value_of("no-out", ringlet(again, unset)), "true");
}

TEST_F(ConfigFile, MistakesAreNamedWithTheirLine) {
  const struct {
    const char* text;
    std::vector<std::string> parts;
  } wrong[] = {{"\nbatch-sise = 3\n", {":2: 'batch-sise'", "did you mean batch-size?"}},
               {"batch-size = \"x\"\n", {":1: batch-size: 'x' is not a whole number"}},
               {"batch-size = [1, 2]\n", {":1: batch-size: it takes one value, not a list"}},
               {"\n\nexact = 1\n", {":3: exact: it is a switch; write true or false"}},
               {"sync = \"rign\"\n", {":1: sync: ", "did you mean ring?"}},
               {"devices = [\"cpu\", \"gpu\"]\n", {":1: devices: 'gpu'"}},
               {"devices = [\"cpu\"]\nreplicas = 2\n", {":2: replicas cannot", ":1: devices"}},
               {"devices = []\n", {":1: devices is empty; give a value or leave it out"}},
               {"seeds = \"1,2\"\n", {":1: 'seeds' is for the command line alone"}},
               {"config = \"other\"\n", {":1: 'config' is for the command line alone"}}};
  for (const auto& [text, parts] : wrong) {
    const Outcome outcome = ringlet({"train", "--config", file(text)});
    EXPECT_TRUE(fails_with(2, outcome, {".toml:"}));
    for (const std::string& part : parts) EXPECT_TRUE(holds(outcome.err, {part}));
  }
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--config", "/no/such"}), {"/no/such", "cannot be"}));
}

// --accumulate, --micro-batches: both are keys and variables, in every command that has them.
TEST_F(ConfigFile, TakesSecondNames) {
  const std::regex of_two_names("  --([a-z-]+), --([a-z-]+) .*");
  int seen = 0;
  for (const Arguments& command : all_commands()) {
    if (command == Arguments{"bench"}) continue;  // lists the flags of those below it
    std::istringstream lines(ringlet(command + Arguments{"--help-all"}).out);
    for (std::string line; std::getline(lines, line);) {
      std::smatch names;
      if (!std::regex_match(line, names, of_two_names)) continue;
      const std::string key = names.str(1), second = names.str(2);
      if (second == "init" || second == "data") continue;  // of train; see below
      ++seen;
      std::string variable = "RINGLET_";
      for (const char c : second) variable += c == '-' ? '_' : static_cast<char>(std::toupper(c));
      const Arguments print = command + Arguments{"--print-config"};
      const std::string by_second = file(second + " = 7\n"),
                        by_both = file(second + " = 7\n" + key + " = 6\n");
      EXPECT_EQ(value_of(key, ringlet(print, {.environment = {{variable, "7"}}})), "7") << second;
      EXPECT_EQ(value_of(key, ringlet(print + Arguments{"--config", by_second})), "7") << second;
      EXPECT_EQ(value_of(key, ringlet(print + Arguments{"--config", by_both})), "6") << second;
    }
  }
  EXPECT_GE(seen, 9);
}

TEST_F(ConfigFile, LeavesTrainsOwnToTrain) {
  const std::string ours = file("init = \"m.safetensors\"\ndata = \"synthetic\"\n");
  const ProgramOptions variables{
      .environment = {{"RINGLET_INIT", "m.safetensors"}, {"RINGLET_DATASET", "synthetic"}}};
  for (const Outcome& outcome :
       {ringlet({"eval", "--config", ours}), ringlet({"eval"}, variables)}) {
    EXPECT_TRUE(fails_with(2, outcome, {"--checkpoint is required"}));
  }
  const Arguments report{"report", "run", "--print-config"};
  EXPECT_EQ(value_of("data-dir", ringlet(report + Arguments{"--config", ours})), "");
  EXPECT_EQ(value_of("data-dir", ringlet(report, variables)), "");
}

TEST_F(ConfigFile, HoldsNoEmptyValue) {
  const auto with = [this](const char* line) {
    return ringlet({"train", "--config", file(std::string(kQuick) + line)});
  };
  EXPECT_TRUE(fails_with(2, with("out = \"\"\n"), {": out is empty"}));
  EXPECT_TRUE(fails_with(2, with("devices = [\"cpu:0\", \"\"]\n"), {": devices is empty"}));
  EXPECT_TRUE(fails_with(2, with("devices = \"cpu:0,\"\n"), {": devices: 'cpu:0,'"}));
}

TEST_F(ConfigFile, ServesEveryCommand) {
  const std::string quick = file(kQuick);
  const std::string out = in_folder("run");
  ASSERT_TRUE(succeeds(ringlet({"train", "--config", quick, "--out", out})));
  const std::string own = out + "/config.toml";
  EXPECT_TRUE(succeeds(ringlet({"eval", "--config", own, "--checkpoint", out})));
  EXPECT_TRUE(fails_with(2, ringlet({"eval", "--config", own}), {"--checkpoint is required"}));
  EXPECT_EQ(value_of("steps", ringlet({"bench", "train", "--print-config", "--config",
                                       file("steps = 7\nout = \"unused\"\n")})),
            "7");
}

/// But for its folder, which is no page or table.
TEST_F(ConfigFile, OfARunServesOtherCommands) {
  const std::string run = in_folder("run"), config = run + "/config.toml";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  EXPECT_TRUE(holds(read_file(config), {"\nout = "}));
  for (const Arguments& line : {Arguments{"inspect", run}, {"compare", run, run}}) {
    EXPECT_TRUE(succeeds(ringlet(line + Arguments{"--config", config})));
  }
}

/// A value of another kind goes to the command that takes it.
TEST_F(ConfigFile, PassesOverWhatIsOfAnotherKindElsewhere) {
  struct Case {
    Arguments command;
    const char* text;
    const char* variable;
    const char* value;
  };
  const std::string run = in_folder("run");
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  const Case cases[] = {
      {{"bench", "all-reduce"}, "processes = 2\n", "RINGLET_PROCESSES", "2"},
      {{"predict", "--checkpoint", run}, "split = 0.2\n", "RINGLET_SPLIT", "0.2"},
      {{"eval", "--checkpoint", run}, "precision = \"auto\"\n", "RINGLET_PRECISION", "auto"},
      {{"train"}, "replicas = [1, 2]\n", "RINGLET_REPLICAS", "1,2"},
      {{"train"}, "bucket-kb = [1, 2]\n", "RINGLET_BUCKET_KB", "1,2"}};
  for (const auto& [command, text, variable, value] : cases) {
    const Arguments line = command + Arguments{"--print-config"};
    const Outcome usual = ringlet(line);
    const Outcome by_file = ringlet(line + Arguments{"--config", file(text)});
    const Outcome by_variable = ringlet(line, {.environment = {{variable, value}}});
    for (const Outcome& outcome : {by_file, by_variable}) {
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(outcome.out, usual.out) << text;
      EXPECT_TRUE(holds(outcome.err, {" is passed over: for '"}));
    }
  }
  const Arguments simulate{"simulate", "--alpha", "5us", "--beta", "50G"};
  EXPECT_TRUE(succeeds(ringlet(simulate + Arguments{"--config", file("batch-size = 64\n")})));
  EXPECT_TRUE(fails_with(2, ringlet(simulate + Arguments{"--batch-size", "64"}),
                         {"--batch-size needs --train-step beside it"}));
}

/// What the command line chooses leaves no place for some of what a run has written out.
TEST_F(ConfigFile, IsSilencedWhereWhatItIsForIsNotChosen) {
  const std::string sgd = file(std::string(kQuick) + "optimizer = \"sgd\"\nmomentum = 0.8\n");
  const Arguments line{"train", "--config", sgd};
  EXPECT_EQ(value_of("momentum", ringlet(line + Arguments{"--print-config"})), "0.8");
  EXPECT_TRUE(succeeds(ringlet(line + Arguments{"--optimizer", "adamw"})));
  EXPECT_TRUE(fails_with(2, ringlet(line + Arguments{"--optimizer", "adamw", "--momentum", "0.8"}),
                         {"--momentum: is SGD's"}));
  const std::string pictures = file(std::string(kQuick) + "image-size = 48\nskip-broken = true\n");
  EXPECT_TRUE(succeeds(ringlet({"train", "--config", pictures, "--data", "synthetic"})));
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--config", pictures}), {"--image-size is about"}));
}

/// The files of one run are not replaced by another's.
TEST_F(ConfigFile, OfARunLeavesItsFilesAlone) {
  const std::string run = in_folder("run"), trace = in_folder("tr.json");
  const std::string metrics = in_folder("m.jsonl"), config = run + "/config.toml";
  ASSERT_TRUE(succeeds(ringlet(
      quick_train({"--processes", "2", "--out", run, "--trace", trace, "--metrics", metrics}))));
  const std::string traced = read_file(trace), measured = read_file(metrics);
  const Arguments own{"--config", config, "--force"};
  ASSERT_TRUE(succeeds(ringlet(Arguments{"bench", "all-reduce", "--begin", "4K", "--end", "4K",
                                         "--iterations", "1", "--strategies", "ring"} +
                               own)));
  ASSERT_TRUE(
      succeeds(ringlet(Arguments{"train", "--out", in_folder("again"), "--max-steps", "1"} + own)));
  EXPECT_EQ(read_file(trace), traced);
  EXPECT_EQ(read_file(metrics), measured);
}

/// A run's file and what each command prints are read by every command, and printed as they were.
TEST_F(ConfigFile, IsReadAsItWasPrinted) {
  const std::string run = in_folder("run");
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--processes", "2", "--out", run}))));
  const std::string trace = in_folder("tr.json");
  const Arguments commands[] = {{"train", "--no-out"},
                                {"train", "--optimizer", "adamw", "--no-normalize"},
                                {"eval", "--checkpoint", run},
                                {"predict", "--checkpoint", run, "--data", "synthetic"},
                                {"report", run},
                                {"report", run, "--follow", "--port", "0"},
                                {"bench", "train"},
                                {"bench", "all-reduce"},
                                {"bench", "all-reduce", "-c", "0"},
                                {"bench", "broadcast"},
                                {"tune"},
                                {"simulate", "--alpha", "5us", "--beta", "50G"},
                                {"pipeline"},
                                {"pipeline", "--from", trace, "--step", "2"},
                                {"compare", run, run},
                                {"inspect", run},
                                {"devices"}};
  for (const Arguments& command : commands) {
    const std::string name = command.front() + " " + command.back();
    const Outcome first = ringlet(command + Arguments{"--print-config"});
    ASSERT_TRUE(succeeds(first)) << name;
    Arguments bare;  // the command and what is no flag
    for (const std::string& word : command) {
      if (word.starts_with("-")) break;
      bare.push_back(word);
    }
    bare.emplace_back("--print-config");
    bare.emplace_back("--config");
    const Outcome second = ringlet(bare + Arguments{file(first.out)});
    ASSERT_TRUE(succeeds(second)) << name;
    const Outcome third = ringlet(bare + Arguments{file(second.out)});
    EXPECT_EQ(second.out, third.out) << name;
    // 4K is 4096 and [1] is 1 when it is read, so what it was read as says whether it was the same.
    EXPECT_EQ(value_of("no-check", first), value_of("no-check", second)) << name;
    EXPECT_TRUE(
        succeeds(ringlet(command + Arguments{"--print-config", "--config", run + "/config.toml"})))
        << name;
  }
  EXPECT_EQ(value_of("no-check", ringlet({"bench", "all-reduce", "-c", "0", "--print-config"})),
            "true");
}

TEST_F(ConfigFile, OfARunInAFolderThatIsNotUtf8IsRead) {
  const std::string run = in_folder("o\xff");
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  const Outcome told = ringlet({"train", "--print-config", "--config", run + "/config.toml"});
  EXPECT_EQ(value_of("model", told), "\"mlp\"");
}

TEST_F(ConfigFile, IsNamedWhereItSetWhatIsRefused) {
  const std::string run = in_folder("run");
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", run}))));
  const Arguments resume{"train", "--resume", run};
  EXPECT_TRUE(fails_with(2, ringlet(resume, {.environment = {{"RINGLET_LR", "0.5"}}}),
                         {"contradicts --lr 0.5", "(--lr is set by RINGLET_LR)"}));
  EXPECT_TRUE(fails_with(2, ringlet(resume + Arguments{"--config", file("\nlr = 0.5\n")}),
                         {"contradicts --lr 0.5", "(--lr is set by ", ".toml:2: lr)"}));
  const Outcome typed = ringlet(resume + Arguments{"--lr", "0.5"});
  EXPECT_EQ(typed.err.find("is set by"), std::string::npos) << typed.err;
  EXPECT_TRUE(fails_with(2, ringlet({"devices"}, {.environment = {{"RINGLET_CONFIG", "/no/such"}}}),
                         {"RINGLET_CONFIG /no/such cannot be read"}));
}

TEST_F(ConfigFile, NamesTheCommandThatReadsIt) {
  for (const Arguments& command :
       {Arguments{"train"}, Arguments{"bench", "train"}, Arguments{"bench", "all-reduce"}}) {
    const std::string name = "ringlet" + (command.size() > 1 ? " " + command[0] : "");
    const Outcome printed = ringlet(command + Arguments{"--print-config"});
    EXPECT_TRUE(holds(printed.out, {"# " + name + " " + command.back() + ", version",
                                    "Read it with: " + name + " " + command.back() + " --config"}));
    EXPECT_TRUE(
        succeeds(ringlet(command + Arguments{"--print-config", "--config", file(printed.out)})));
  }
}

TEST_F(ConfigFile, OfARunRepeatsIt) {
  const std::string first = in_folder("first");
  const std::string second = in_folder("second");
  ASSERT_TRUE(
      succeeds(ringlet(quick_train({"--exact", "--lr", "0.07", "--seed", "18446744073709551615",
                                    "--replicas", "2", "--out", first, "--max-steps", "3"}))));
  const std::string own = first + "/config.toml";
  EXPECT_TRUE(
      fails_with(2, ringlet({"train", "--config", own}, {.environment = {{"RINGLET_NO_OUT", ""}}}),
                 {"holds another run"}));
  ASSERT_TRUE(succeeds(ringlet({"train", "--config", own, "--out", second, "--replicas", "4"})));
  EXPECT_EQ(read_file(first + "/model.safetensors"), read_file(second + "/model.safetensors"));
  EXPECT_TRUE(holds(read_file(own), {"\nlr = 0.07\n", "\nseed = \"18446744073709551615\"\n",
                                     "\nreplicas = 2\n", "\nmax-steps = 3\n", "\n# init =\n"}));
}

TEST_F(ConfigFile, OfAResumedRunIsThatOfTheWholeRun) {
  const std::string start = in_folder("start");
  const std::string out = in_folder("run");
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "1", "--out", start}))));
  const std::string init = start + "/model.safetensors";
  ASSERT_TRUE(succeeds(
      ringlet(quick_train({"--lr", "0.07", "--max-steps", "2", "--init", init, "--out", out}))));
  const Arguments resume{"train", "--resume", out};
  EXPECT_TRUE(fails_with(2, ringlet(resume + Arguments{"--config", file("lr = 0.3\n")}),
                         {"contradicts --lr 0.3", "--lr 0.07"}));
  EXPECT_TRUE(fails_with(2, ringlet(resume + Arguments{"--freeze", "fc1", "--micro-batches", "2"}),
                         {"--freeze fc1 (the run has no --freeze)",
                          "--accumulate (--micro-batches) 2 (the run has --accumulate "
                          "(--micro-batches) 1)"}));
  ASSERT_TRUE(succeeds(ringlet(resume)));
  EXPECT_TRUE(holds(read_file(out + "/config.toml"),
                    {"\nlr = 0.07\n", "\ninit = \"" + init + "\"\n", "\n# max-steps =\n"}));
}

/// Written by the program of that commit, without its comments.
TEST_F(ConfigFile, OfAnOldRunSaysTheSame) {
  const std::string old = testdata("old/0cd387b/config.toml");
  const Outcome told = ringlet({"train", "--config", old, "--print-config"});
  ASSERT_TRUE(succeeds(told));
  std::istringstream lines(read_file(old));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (line.starts_with("save-every")) continue;  // these tests keep nothing of a run
    EXPECT_NE(told.out.find("\n" + line + "\n"), std::string::npos) << line;
  }
  EXPECT_GT(count, 50);
}

TEST_F(ConfigFile, ReachesAllProcesses) {
  const std::string out = in_folder("run");
  const Outcome outcome =
      ringlet({"train", "--config", file(std::string(kQuick) + "processes = 2\n"), "--out", out});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"2 in 2 processes"}));
  EXPECT_TRUE(holds(read_file(out + "/config.toml"), {"\nprocesses = 2\n"}));
}

TEST(Environment, SetsFlags) {
  const ProgramOptions environment{.environment = {{"RINGLET_DATASET", "synthetic"},
                                                   {"RINGLET_SYNTHETIC_TRAIN", "256"},
                                                   {"RINGLET_SYNTHETIC_TEST", "64"},
                                                   {"RINGLET_MODEL", "mlp"},
                                                   {"RINGLET_EPOCHS", "1"},
                                                   {"RINGLET_BATCH_SIZE", "64"},
                                                   {"RINGLET_DEVICES", "cpu:0,cpu:0"},
                                                   {"RINGLET_LR", ""}}};
  const Outcome outcome = ringlet({"train"}, environment);
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"synthetic/train: 256 images", "2 replicas x 32"}));
}

TEST(Environment, MistakesAreNamed) {
  const auto with = [](const char* name, const char* value) {
    return ringlet({"train"}, {.environment = {{name, value}}});
  };
  EXPECT_TRUE(fails_with(2, with("RINGLET_LR", "fast"), {"RINGLET_LR: 'fast' is not a number"}));
  EXPECT_TRUE(fails_with(2, with("RINGLET_EXACT", "maybe"), {"RINGLET_EXACT", "neither true nor"}));
  EXPECT_TRUE(fails_with(2, with("RINGLET_DEVICES", ",cpu"), {"RINGLET_DEVICES: ',cpu'", "empty"}));
}

TEST(Environment, WarnsOfVariablesThatSetNothing) {
  const Outcome near =
      ringlet({"train", "--print-config"}, {.environment = {{"RINGLET_BATCHSIZE", "3"}}});
  EXPECT_EQ(near.code, 0);
  EXPECT_EQ(near.err,
            "ringlet: warning: the variable RINGLET_BATCHSIZE sets nothing; did you mean "
            "RINGLET_BATCH_SIZE?\n");
  EXPECT_TRUE(succeeds(
      ringlet({"train", "--print-config"},
              {.environment = {{"RINGLET_XYZZYPLUGH", "3"}, {"RINGLET_CHECKPOINT", "of eval"}}})));
}

TEST(Environment, GivesWhatACommandRequires) {
  EXPECT_TRUE(fails_with(
      1,
      ringlet({"eval", "--data", "synthetic", "--synthetic-train", "9", "--synthetic-test", "9"},
              {.environment = {{"RINGLET_CHECKPOINT", "/no/model"}}}),
      {"/no/model"}));
}

}  // namespace
}  // namespace ringlet::testing
