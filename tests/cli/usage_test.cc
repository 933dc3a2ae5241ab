// Command lines that cannot be: one line that names the flag and the remedy, exit code 2; and what
// --help and --version print.
#include <algorithm>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

struct WrongLine {
  const char* name;
  Arguments arguments;
  std::vector<std::string> parts;
};

class WrongLines : public ::testing::TestWithParam<WrongLine> {};

TEST_P(WrongLines, EndWithTwoAndSayWhy) {
  const Outcome outcome = ringlet(GetParam().arguments);
  EXPECT_TRUE(fails_with(2, outcome, {}));
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : GetParam().parts) EXPECT_TRUE(holds(outcome.err, {part}));
}

const WrongLine kWrongLines[] = {
    {"NoCommand", {}, {"needs a command", "train", "eval", "bench", "ringlet --help"}},
    {"UnknownCommand", {"trian"}, {"'trian'", "did you mean train?"}},
    {"NothingToBench", {"bench"}, {"'ringlet bench' needs a command", "train"}},
    {"UnknownBench", {"bench", "tran"}, {"'ringlet bench'", "did you mean train?"}},
    {"UnknownFlag", {"train", "--epoch", "3"}, {"'--epoch'", "did you mean --epochs?"}},
    {"UnknownFlagWithValue", {"train", "--sinc=ring"}, {"did you mean --sync?"}},
    {"FarFetchedFlag", {"train", "--xyzzy-plugh"}, {"'--xyzzy-plugh'", "ringlet train --help"}},
    {"SurplusWord", {"train", "now"}, {"'now' is not known to 'ringlet train'"}},
    {"UnknownSync", {"train", "--sync", "rign"}, {"--sync", "'rign'", "did you mean ring?"}},
    {"UnknownModel", {"train", "--model", "lnet"}, {"--model", "did you mean lenet?"}},
    {"UnknownSchedule", {"train", "--schedule", "one-cylce"}, {"did you mean one-cycle?"}},
    {"UnknownData", {"train", "--data", "fashion-mist"}, {"did you mean fashion-mnist?"}},
    {"NoSuchFolder", {"train", "--data", "/no/such"}, {"--data", "'/no/such'", "folder"}},
    {"UnknownOverlap", {"train", "--overlap", "yes"}, {"--overlap", "auto, on, off"}},
    {"NoReplicas", {"train", "--replicas", "0"}, {"--replicas", "'0'", "from 1 to"}},
    {"NoThreads", {"train", "--threads", "0"}, {"--threads", "'0'", "from 1 to"}},
    {"BatchOfWords", {"train", "--batch-size", "x"}, {"--batch-size", "'x'", "whole number"}},
    {"NegativeBatch", {"train", "--batch-size", "-8"}, {"--batch-size", "'-8'"}},
    {"HugeBatch", {"train", "--batch-size", "9223372036854775807"}, {"--batch-size", "2147483647"}},
    {"EndlessBatch", {"train", "--batch-size", "99999999999999999999"}, {"--batch-size"}},
    {"BrokenEpochs", {"train", "--epochs", "1.5"}, {"--epochs", "'1.5'", "whole number"}},
    {"NegativeSeed", {"train", "--seed", "-1"}, {"--seed", "'-1'"}},
    {"NaNRate", {"train", "--lr", "nan"}, {"--lr", "'nan'"}},
    {"NegativeRate", {"train", "--lr", "-0.1"}, {"--lr", "at least 0"}},
    {"LargeMomentum", {"train", "--momentum", "2"}, {"--momentum", "from 0 to 1"}},
    {"NoTimeout", {"train", "--comm-timeout", "0"}, {"--comm-timeout"}},
    {"MissingValue", {"train", "--epochs"}, {"--epochs needs a value"}},
    {"GivenTwice", {"train", "--epochs", "1", "--epochs", "2"}, {"--epochs", "more than once"}},
    {"SwitchWithValue", {"train", "--exact=5"}, {"--exact", "no value"}},
    {"NoDevice", {"train", "--devices", "gpu"}, {"--devices", "'gpu'", "cpu:0"}},
    {"OneBadDevice", {"train", "--devices", "cpu:0,cpux"}, {"--devices", "'cpux'"}},
    {"DeviceWithoutMemory", {"train", "--device", "meta"}, {"--device", "'meta'"}},
    {"DevicesAndReplicas",
     {"train", "--devices", "cpu:0,cpu:0", "--replicas", "2"},
     {"--devices", "--replicas", "cannot be combined"}},
    {"ResumeAndInit", {"train", "--resume", "a", "--init", "b"}, {"--resume", "--init"}},
    {"SaveNowhere",
     quick_train({"--save-every", "1", "--no-out"}),
     {"--save-every", "cannot be combined with", "--no-out"}},
    {"ExactByThree", quick_train({"--exact", "--replicas", "3"}), {"--exact", "power of two"}},
    {"ExactByRing", quick_train({"--exact", "--replicas", "2", "--sync", "ring"}), {"doubling"}},
    {"NcclOnTheProcessor", quick_train({"--transport", "nccl"}), {"--transport nccl", "--device"}},
    {"NcclsOwnSumLocally",
     quick_train({"--transport", "local", "--sync", "nccl"}),
     {"--sync nccl needs --transport nccl"}},
    {"NcclOnOneGpu",
     {"train", "--devices", "cuda:0,cuda:0", "--transport", "nccl"},
     {"--transport nccl", "cuda:0 has several"}},
    {"DevicesOfTwoKinds", {"train", "--devices", "cpu,cuda:0"}, {"one kind", "cpu:0 and cuda:0"}},
    {"FewShards", quick_train({"--replicas", "4", "--shards", "2"}), {"--shards 2", "4 replicas"}},
    {"EvalOfNothing", {"eval"}, {"--checkpoint is required"}},
};

INSTANTIATE_TEST_SUITE_P(Usage, WrongLines, ::testing::ValuesIn(kWrongLines),
                         [](const auto& line) { return std::string(line.param.name); });

TEST(Devices, ThatDoNotExistAreNamed) {
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--devices", "cpu:7"})),
                         {"cpu:7 does not exist", "--replicas N --device cpu"}));
}

TEST(Devices, MayBeListed) {
  const Outcome outcome = ringlet(quick_train({"--devices", "cpu:0,cpu,cpu:0"}));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"22 + 21 + 21 over 3 replicas"}));
}

TEST(Help, NamesEveryFlagWithinAHundredColumns) {
  const Outcome outcome = ringlet({"train", "--help"});
  ASSERT_TRUE(succeeds(outcome));
  for (const char* flag : {"--model lenet|lenet-d2l|mlp",
                           "--data ",
                           "--data-dir ",
                           "--replicas N",
                           "--device ",
                           "--devices ",
                           "--threads N",
                           "--sync naive|tree|ring|",
                           "--transport auto|local|shm|gloo|nccl",
                           "--shards N",
                           "--exact ",
                           "--grad-dtype f32|f16|bf16",
                           "--bucket-kb N",
                           "--first-bucket-kb N",
                           "--overlap auto|on|off",
                           "--batch-size N",
                           "--epochs N",
                           "--max-steps N",
                           "--lr X",
                           "--momentum X",
                           "--nesterov ",
                           "--weight-decay X",
                           "--schedule constant|one-cycle",
                           "--seed N",
                           "--no-shuffle ",
                           "--init ",
                           "--out ",
                           "--no-out ",
                           "--save-every N",
                           "--resume ",
                           "--metrics ",
                           "--tensorboard ",
                           "--check-replicas N",
                           "--comm-timeout X",
                           "--trace ",
                           "--accumulate N"}) {
    EXPECT_TRUE(holds(outcome.out, {flag}));
  }
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
  }
}

TEST(Help, GroupsFlagsAndGivesDefaults) {
  const Outcome outcome = ringlet({"train", "--help"});
  EXPECT_TRUE(holds(outcome.out, {"\nModel and data:\n", "\nRecipe:\n", "\nReplicas:\n",
                                  "\nSynchronisation:\n", "of each replica [1]\n",
                                  "[fashion-mnist]", "[lenet, mlp: 0.1; lenet-d2l: 0.2]"}));
  for (const char* ugly : {"TEXT", "INT:", "FLOAT", "POSITIVE", "Excludes", "{false}"}) {
    EXPECT_EQ(outcome.out.find(ugly), std::string::npos) << ugly;
  }
}

TEST(Help, ListsTheCommands) {
  const Outcome outcome = ringlet({"--help"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"\n  train ", "\n  eval ", "\n  bench ", "\n  devices ", "--version"}));
}

TEST(Version, IsOneLine) {
  const Outcome outcome = ringlet({"--version"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(outcome.out.starts_with("ringlet 0."));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

}  // namespace
}  // namespace ringlet::testing
