// Training by a loss with a margin: what is saved, resumed and begun with does not depend on how
// many ranks have the classes' centres.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "data/memory_dataset.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"

namespace ringlet::train {
namespace {

TEST(Margin, ProcessesWriteWhatThreadsWrite) {
  const std::string threads = files_of(Trial(exact_options(4)));
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial two(exact_options(2));
    two.options.execution.in_processes = true;
    two.options.execution.transport = TransportChoice::shm;
    two.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(two.options, two.data, 4), {});
  });
  EXPECT_TRUE(files_of(folder.path()) == threads);
}

TEST(Margin, WhatFourSavedOthersResume) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const auto plain = [&](int ranks) {
      Trial made(plain_options(ranks));
      made.options.recipe.optimizer = optimizer;
      made.options.recipe.momentum = std::string(optimizer) == "sgd" ? 0.9 : 0;
      return made;
    };
    const std::vector<double> losses = plain(1).to_the_end().losses();
    for (const int ranks : {1, 2, 3, 8}) {
      const testing::TemporaryDirectory folder;
      Trial four = plain(4), rest = plain(ranks);
      four.options.files.out = rest.options.files.out = folder.path();
      four.options.max_steps = 4;
      four.to_the_end();
      const RunSetup setup =
          make_run_setup(rest.options, rest.data, ranks, read_state(folder.path()));
      expect_losses_near(run(setup).losses(), {losses.begin() + 4, losses.end()}, 2e-5);
    }
  }
}

TEST(Margin, ExactModeResumesOnAnotherNumberOfRanksBitForBit) {
  const testing::TemporaryDirectory folder;
  const std::string whole = files_of(Trial(exact_options(1)));
  Trial four(exact_options(4)), two(exact_options(2));
  four.options.files.out = two.options.files.out = folder.path();
  four.options.max_steps = 4;
  four.to_the_end();
  run(make_run_setup(two.options, two.data, 2, read_state(folder.path())));
  EXPECT_TRUE(files_of(folder.path()) == whole);
}

TEST(Margin, TheModelsFileHasTheModelAlone) {
  const testing::TemporaryDirectory folder;
  Trial two(plain_options(2));
  two.options.files.out = folder.path();
  const Outcome outcome = two.to_the_end();
  const SafetensorsFile model(folder / "model.safetensors"),
      centres(folder / "centres.safetensors");
  EXPECT_EQ(model.entries().size(), 4U);
  EXPECT_FALSE(model.contains("centres.weight"));
  ASSERT_EQ(centres.entries().size(), 1U);
  EXPECT_EQ(centres.entries()[0].spec.shape, (std::vector<std::int64_t>{10, kSize}));
  const auto values = centres.f32("weight");
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 5 * kSize),
            outcome.of_ranks[0].values.back());
  EXPECT_EQ(std::vector<float>(values.begin() + 5 * kSize, values.end()),
            outcome.of_ranks[1].values.back());
  EXPECT_TRUE(centres.metadata().at("ringlet.classes").find("class 7") != std::string::npos);
  EXPECT_EQ(read_model_info(folder / "model.safetensors")->input().outputs, kSize);
}

TEST(Margin, StartsFromCentresByName) {
  const testing::TemporaryDirectory folder;
  Trial first(plain_options(2));
  first.options.files.out = folder.path();
  first.to_the_end();
  const std::vector<float> learnt = centres_in(folder.path());
  const auto begun = [&](const std::vector<int>& classes, const std::filesystem::path& file) {
    Trial more(plain_options(3));
    data::DatasetInfo info{
        .name = "some", .channels = 1, .height = kSide, .width = kSide, .target_names = {}};
    for (const int k : classes) info.target_names.push_back("class " + std::to_string(k));
    const std::vector<std::uint8_t> images(kSide * kSide * 4, 9);
    more.data.train = more.data.test = std::make_shared<const data::MemoryDataset>(
        info, images, std::vector<std::int32_t>{0, 1, 0, 1});
    more.options.files.init_centres = file;
    more.options.recipe.lr = 0;
    const testing::TemporaryDirectory out;
    more.options.files.out = out.path();
    more.to_the_end();
    return centres_in(out.path());
  };
  const std::vector<float> some = begun({4, 2}, folder.path());
  const auto row = [&](int k) {
    return std::vector<float>(learnt.begin() + k * kSize, learnt.begin() + (k + 1) * kSize);
  };
  std::vector<float> wanted = row(4);
  for (const float value : row(2)) wanted.push_back(value);
  EXPECT_EQ(some, wanted);
  const std::string message = testing::message_of<Error>([&] {
    begun({4, 11}, folder / "centres.safetensors");
  });
  EXPECT_TRUE(testing::says(message, {"centres.safetensors", "10 classes", "2 of the data"}))
      << message;
}

TEST(Margin, AnotherRunsCentresAreRefused) {
  const testing::TemporaryDirectory folder;
  Trial trial(plain_options(1));
  for (const char* name : {"one", "other"}) {
    std::filesystem::create_directory(folder / name);
    trial.options.files.out = folder / name;
    trial.options.recipe.seed += 1;
    trial.to_the_end();
  }
  const auto measured = [&](const char* centres) {
    trial.options.files.init_centres = folder / centres / kCentresFile;
    return evaluate(make_run_setup(trial.options, trial.data, 1),
                    folder / "one" / "model.safetensors");
  };
  EXPECT_EQ(measured("one").samples, 30);
  const std::string message = testing::message_of<Error>([&] { measured("other"); });
  EXPECT_TRUE(testing::says(message, {"other", "are not the centres that", "one"})) << message;
}

TEST(Margin, AModelOfAnotherEmbeddingsSizeIsRefusedInItsOwnWords) {
  const testing::TemporaryDirectory folder;
  Trial first(plain_options(1)), second(plain_options(1));
  first.options.files.out = folder.path();
  first.to_the_end();
  second.options.recipe.embedding_size = kSize + 2;
  second.options.files.init = folder / "model.safetensors";
  const std::string message = testing::message_of<Error>([&] { second.to_the_end(); });
  EXPECT_TRUE(testing::says(
      message, {"its embeddings have 6 numbers", "those of this run have 8", "--embedding-size 6"}))
      << message;
  second.options.files.replace_head = true;
  EXPECT_EQ(second.to_the_end().result.test.samples, 30);
}

}  // namespace
}  // namespace ringlet::train
