#include "train/sync/tuning.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files/atomic_file.h"
#include "base/processor_name.h"
#include "comm/all_reduce/auto.h"
#include "comm/transport/local/local_transport.h"
#include "tests/support/files.h"

namespace ringlet::train {
namespace {

using comm::look_up;
using comm::StrategyTable;
using testing::TemporaryDirectory;
using testing::write_file;

TEST(Tuning, ComesBackAsItWasKept) {
  const TemporaryDirectory folder;
  const auto file = folder / "cache" / "table.json";
  EXPECT_TRUE(read_tuning(file, DeviceKind::cpu, "local").empty());
  write_tuning(file, DeviceKind::cpu, "local", {{2, 0, "one-shot"}, {2, 5000, "two-shot"}});
  write_tuning(file, DeviceKind::cuda, "nccl", {{2, 0, "nccl"}});
  write_tuning(file, DeviceKind::cpu, "local", {{4, 0, "doubling"}});
  write_tuning(file, DeviceKind::cpu, "local", {{2, 0, "tree"}, {2, 70, "ring"}});  // instead
  const StrategyTable table = read_tuning(file, DeviceKind::cpu, "local");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(look_up(table, 2, 69), "tree");
  EXPECT_EQ(look_up(table, 2, 5000), "ring");
  EXPECT_EQ(look_up(table, 4, 1), "doubling");
  EXPECT_EQ(look_up(read_tuning(file, DeviceKind::cuda, "nccl"), 2, 1), "nccl");
  EXPECT_TRUE(read_tuning(file, DeviceKind::cpu, "gloo").empty());
}

TEST(Tuning, OfAnotherProcessorIsNotTakenAndReplaced) {
  const TemporaryDirectory folder;
  const auto file = folder / "table.json";
  EXPECT_EQ(why_foreign(file), "");
  write_tuning(file, DeviceKind::cpu, "local", {{2, 0, "ring"}});
  EXPECT_EQ(why_foreign(file), "");
  std::string text = testing::read_file(file);
  const std::string own = processor_name();
  ASSERT_NE(text.find(own), text.npos);
  write_file(file, text.replace(text.find(own), own.size(), "an abacus"));
  const std::string why = why_foreign(file);
  EXPECT_EQ(why, file.string() + " was measured on an abacus, and this machine has " + own +
                     ": it is not used; run ringlet tune again");
  write_tuning(file, DeviceKind::cpu, "local", {{4, 0, "tree"}});
  EXPECT_EQ(why_foreign(file), "");
  EXPECT_EQ(read_tuning(file, DeviceKind::cpu, "local").size(), 1U);  // the old ones have gone
  write_file(file, R"({"ranges": []})");                              // of an earlier version
  EXPECT_EQ(why_foreign(file), "");
}

TEST(Tuning, KeepsTheTimesBesideTheTable) {
  const TemporaryDirectory folder;
  const auto file = folder / "table.json";
  write_file(file, R"({"ranges": []})");  // an older one
  EXPECT_TRUE(read_times(file, DeviceKind::cpu, "local").empty());
  write_tuning(file, DeviceKind::cpu, "local", {{2, 0, "ring"}}, {{2, "ring", 64, 1e-6}});
  write_tuning(file, DeviceKind::cpu, "shm", {{2, 0, "tree"}}, {{2, "tree", 64, 5e-6}});
  write_tuning(file, DeviceKind::cpu, "local", {{4, 0, "ring"}}, {{4, "ring", 64, 3e-6}});
  write_tuning(file, DeviceKind::cpu, "local", {{2, 0, "ring"}}, {{2, "ring", 128, 2e-6}});
  const auto times = read_times(file, DeviceKind::cpu, "local");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].ranks, 4);
  EXPECT_EQ(times[1].ranks, 2);  // instead of the first
  EXPECT_EQ(times[1].bytes, 128);
  EXPECT_EQ(times[1].seconds, 2e-6);
  EXPECT_EQ(times[1].strategy, "ring");
  EXPECT_EQ(read_tuning(file, DeviceKind::cpu, "local").size(), 2u);
  EXPECT_EQ(read_times(file, DeviceKind::cpu, "shm").size(), 1u);
}

TEST(Tuning, AFileThatIsNoneIsNamed) {
  const TemporaryDirectory folder;
  for (const char* times :
       {"3", "[3]", R"([{"device": "cpu", "transport": "local", "ranks": 2}])",
        R"([{"device": "cpu", "transport": "local", "ranks": 2, "strategy": "ring", "bytes": 0,
             "seconds": 1}])"}) {
    write_file(folder / "table.json", std::string(R"({"ranges": [], "times": )") + times + "}");
    EXPECT_THROW(read_times(folder / "table.json", DeviceKind::cpu, "local"), FileError) << times;
  }
  for (const char* content :
       {"", "[]", "{}", "{\"ranges\": 3}",
        R"({"ranges": [{"device": "cpu", "transport": "local", "strategy": "ring"}]})"}) {
    write_file(folder / "table.json", content);
    try {
      read_tuning(folder / "table.json", DeviceKind::cpu, "local");
      FAIL() << content;
    } catch (const FileError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          (folder / "table.json").string() + " is not what ringlet tune writes; name another file");
    }
  }
  for (const char* content : {"3", R"({"ranges": ["ring"]})", R"({"ranges": [{"device": 3}]})"}) {
    write_file(folder / "table.json", content);
    EXPECT_THROW(
        write_tuning(folder / "table.json", DeviceKind::cpu, "local", {{2, 0, "ring"}}, {}),
        FileError)
        << content;
  }
}

TEST(Tuning, OfStrategiesThatThisVersionDoesNotKnowIsPassedOver) {
  const TemporaryDirectory folder;
  write_file(folder / "table.json",
             R"({"ranges": [{"device": "cpu", "transport": "local", "ranks": 2, "from_bytes": 0,
                 "strategy": "teleport"}]})");
  comm::LocalGroup group(2);
  const comm::Strategies strategies;
  const comm::AutoAllReduce with(group.transport(0), strategies,
                                 read_tuning(folder / "table.json", DeviceKind::cpu, "local"));
  const comm::AutoAllReduce without(group.transport(0), strategies);
  for (const std::int64_t bytes : {1, 10'000, 10'000'000}) {
    EXPECT_STREQ(with.name_for(bytes), without.name_for(bytes));
  }
}

TEST(Tuning, OfTheUsualFileThatIsDamagedIsMadeAnewOnceThatIsDeleted) {
  const TemporaryDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);  // NOLINT: no other thread runs
  std::filesystem::create_directories(tuning_file().parent_path());
  write_file(tuning_file(), "{}");
  try {
    write_tuning(tuning_file(), DeviceKind::cpu, "local", {{2, 0, "tree"}});
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()),
              tuning_file().string() +
                  " is not what ringlet tune writes; delete it and run ringlet tune again");
  }
  std::filesystem::remove(tuning_file());
  write_tuning(tuning_file(), DeviceKind::cpu, "local", {{2, 0, "tree"}});
  EXPECT_EQ(read_tuning(tuning_file(), DeviceKind::cpu, "local").size(), 1u);
}

TEST(Tuning, IsForAutoAlone) {
  const TemporaryDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);  // NOLINT: no other thread runs
  write_tuning(tuning_file(), DeviceKind::cpu, "local", {{2, 0, "tree"}});
  Execution execution;
  execution.sync = "ring";
  EXPECT_TRUE(tuned_table(execution, "local").empty());
  execution.sync = "auto";
  EXPECT_EQ(look_up(tuned_table(execution, "local"), 2, 1), "tree");
  EXPECT_TRUE(tuned_table(execution, "shm").empty());
}

}  // namespace
}  // namespace ringlet::train
