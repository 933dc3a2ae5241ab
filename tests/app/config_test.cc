// Configuration files as text in memory: what they may say, and that nothing they say does harm.
#include "app/cli/config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/files.h"

namespace ringlet::app {
namespace {

using testing::TemporaryDirectory;
using Kind = ConfigEntry::Kind;

class Config : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      parse_config("", "f");
    } catch (const ConfigError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

std::string error_of(std::string_view text) {
  try {
    parse_config(text, "run.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Config, GivesTheTextThatTheCommandLineWouldHave) {
  const auto entries = parse_config(
      "# of a run\nbatch-size = 256\nlr = 5e-4  # shortest\nexact = true\n\n"
      "devices = [\"cpu:0\", \"cpu:1\"]\nout = \"runs/a b\"\nthreads = 1_024\n",
      "run.toml");
  ASSERT_EQ(entries.size(), 6u);
  const struct {
    const char* key;
    Kind kind;
    std::vector<std::string> values;
    std::int64_t line;
  } wanted[] = {
      {"batch-size", Kind::value, {"256"}, 2}, {"lr", Kind::value, {"0.0005"}, 3},
      {"exact", Kind::boolean, {"true"}, 4},   {"devices", Kind::list, {"cpu:0", "cpu:1"}, 6},
      {"out", Kind::value, {"runs/a b"}, 7},   {"threads", Kind::value, {"1024"}, 8}};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].key, wanted[i].key);
    EXPECT_EQ(entries[i].kind, wanted[i].kind) << entries[i].key;
    EXPECT_EQ(entries[i].values, wanted[i].values) << entries[i].key;
    EXPECT_EQ(entries[i].line, wanted[i].line) << entries[i].key;
  }
}

TEST_F(Config, NamesTheLineOfWhatIsWrong) {
  const struct {
    const char* text;
    const char* error;
  } wrong[] = {{"\nlr = = 3\n", "run.toml:2: not TOML"},
               {"lr = 1\nlr = 2\n", "run.toml:2: not TOML"},
               {"\n\n[train]\nlr = 1\n", "run.toml:3: 'train' is a table"},
               {"a.b = 1\n", "run.toml:1: 'a' is a table"},
               {"lr = 1979-05-27\n", "run.toml:1: lr: "},
               {"devices = [[\"cpu\"]]\n", "run.toml:1: devices: "},
               {"out = \"a\\u0000b\"\n", "run.toml:1: out: the text holds a zero byte"},
               {"\"a\\nb\" = 1979-05-27\n", "run.toml:1: a\\nb: "},
               {"a = 1\nb = \u01ab 1\n", "run.toml:2: not TOML: letters"},
               {"\u00e9 = 1\n", "run.toml:1: not TOML: letters"},
               {"# 'quoted\na = \"\\\"\" \u00e9\n", "run.toml:2: not TOML: letters"},
               {"a = \"\"\"x\\\n\u00e9\"\"\"\n", "run.toml:1: texts of several lines"},
               {"[(a]\n", "run.toml:1: not TOML"},
               {"f= 1s=e:'\u01ab'\n", "run.toml:1: not TOML: letters"},
               {"f= [\n1s='\u01ab'\n", "run.toml:2: not TOML: letters"},
               {"f= 1'\u01ab'\n", "run.toml:1: not TOML: letters"},
               {"a = '''x'''\n", "run.toml:1: texts of several lines"}};
  for (const auto& [text, error] : wrong) {
    EXPECT_TRUE(error_of(text).starts_with(error)) << error_of(text);
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos) << "one line";
  }
}

TEST_F(Config, TakesAnyLetterInTextsAndComments) {
  const auto entries = parse_config(
      "\xEF\xBB\xBF# gr\u00f6\u00dfe \"\na = \"\\\"gr\u00f6\u00dfe#\" # \u01ab\nb = '\\\u00e9'\n",
      "f");
  EXPECT_EQ(parse_config("c = [\"\u01ab\",\n  '\u01ab']\n", "f")[0].values.size(), 2u);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].values[0], "\"gr\u00f6\u00dfe#");
  EXPECT_EQ(entries[1].values[0], "\\\u00e9");
}

TEST_F(Config, SurvivesWhatNobodyWouldWrite) {
  const auto repeated = [](const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  for (const std::string& text :
       {repeated("a.", 30'000) + "a = 1", repeated("a.", 4'000) + "a = 1",
        "a = " + repeated("[", 60'000), "a = " + repeated("{a=", 20'000),
        repeated("[[a]]\n", 10'000), "a = \"" + repeated("x", kMaxConfigBytes),
        repeated("\xff", 100), repeated("\n", kMaxConfigBytes + 1), std::string(1000, '\0')}) {
    EXPECT_NE(error_of(text), "no error");
    EXPECT_LT(error_of(text).size(), 1000u);
  }
}

TEST_F(Config, OfAFileIsNeverLoadedWhole) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder / "large.toml";
  std::ofstream(file) << "a = 1";
  std::filesystem::resize_file(file, std::uintmax_t{1} << 33);  // a hole: 8 GiB, if loaded
  EXPECT_THROW(read_config(file), ConfigError);
  EXPECT_THROW(read_config(folder / "absent.toml"), ConfigError);
  EXPECT_THROW(read_config("/tmp"), ConfigError);
}

}  // namespace
}  // namespace ringlet::app
