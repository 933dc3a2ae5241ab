// States, traces and configurations that earlier commits have written (testdata/old/COMMIT, made by
// the program of that commit) are read as they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"
#include "train/files/state.h"
#include "train/telemetry/trace_reader.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

nlohmann::json json_of(const fs::path& file) {
  return nlohmann::json::parse(testing::read_file(file));
}

/// The tensors are zeros but for a few bytes, so the repository has these alone.
void unpack(const fs::path& packed, const fs::path& file) {
  const nlohmann::json parts = json_of(packed);
  const auto header = parts.at("header").get<std::string>();
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  bytes += header;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + parts.at("bytes").get<std::size_t>());
  for (const auto& [offset, hex] : parts.at("not_zero").items()) {
    const auto digits = hex.get<std::string>();
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes[begin + std::stoul(offset) + i / 2] =
          static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  testing::write_file(file, bytes);
}

class OldFiles : public ::testing::TestWithParam<std::string> {
 protected:
  fs::path old() const { return testing::testdata("old/" + GetParam()); }
  testing::TemporaryDirectory folder_{};
};

TEST_P(OldFiles, AreGoneOnWith) {
  fs::create_directories(folder_.path() / "run/state");
  fs::copy_file(old() / "state.json", folder_.path() / "run/state/state.json");
  for (const char* name : {"model", "optimizer"}) {
    unpack(old() / (std::string(name) + ".json"),
           folder_.path() / "run/state" / (std::string(name) + ".safetensors"));
  }
  const SavedState saved = read_state(folder_.path() / "run");
  EXPECT_EQ(saved.progress.step, 6);
  EXPECT_NO_THROW(require_whole(saved));
  // What it does not say is as it was before anybody could say it.
  Recipe recipe = default_recipe("lenet");
  recipe.data = "synthetic";
  recipe.batch_size = 16;
  recipe.epochs = 3;
  recipe.lr = recipe.weight_decay = 0;
  recipe.seed = 3;
  EXPECT_EQ(saved.recipe, recipe);

  TrainOptions options = plain_options(2);
  options.recipe = saved.recipe;
  const data::Splits data =
      data::open_dataset("synthetic", {.synthetic_train = 64, .synthetic_test = 32});
#ifdef __clang__
  // The programs of these commits were compiled by g++, and clang rounds the drawing otherwise.
  if (!data.train->is_known_as(saved.data_hash)) GTEST_SKIP() << "other images than g++ draws";
#endif
  const Outcome outcome = run(make_run_setup(options, data, 2, saved));
  EXPECT_EQ(outcome.steps.size(), 6u);
  EXPECT_NEAR(outcome.result.test.loss, std::log(10.0), 1e-6) << "the weights are zeros";
}

TEST_P(OldFiles, HaveTracesThatAreRead) {
  std::size_t spans = 0;
  read_trace(old() / "trace.json", [&](const TraceSpan& span) {
    EXPECT_FALSE(span.name.empty());
    ++spans;
  });
  EXPECT_GT(spans, 50u);
}

INSTANTIATE_TEST_SUITE_P(Commits, OldFiles, ::testing::Values("218c30f", "b50e7b9", "0cd387b"),
                         [](const auto& commit) { return "Of" + commit.param; });

}  // namespace
}  // namespace ringlet::train
