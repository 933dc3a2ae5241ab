// What a model file says of itself: read back as written, refused in one line where it is broken.
#include "train/files/model_info.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

using testing::says;

ModelInfo example() {
  return {.version = "0.1.0",
          .model = "lenet",
          .data = "fashion-mnist",
          .train_samples = 60000,
          .test_samples = 10000,
          .channels = 1,
          .height = 28,
          .width = 30,
          .output_names = {"T-shirt/top", "say \"hat\"", "Größe"},
          .mean = 0.1F,
          .deviation = 1.0F / 3,
          .background = 0.0123F};
}

TEST(ModelInfo, IsReadAsItWasWritten) {
  EXPECT_EQ(parse_model_info("f", to_metadata(example())), example());
  ModelInfo plain = example();
  plain.background.reset();
  plain.train_samples = plain.test_samples = 0;
  EXPECT_EQ(parse_model_info("f", to_metadata(plain)), plain);
}

TEST(ModelInfo, SaysThatBrokenPicturesWereLeftOutOnlyWhereTheyWere) {
  EXPECT_FALSE(to_metadata(example()).contains("ringlet.broken"));
  ModelInfo info = example();
  info.skip_broken = true;
  Metadata metadata = to_metadata(info);
  EXPECT_EQ(metadata.at("ringlet.broken"), "left out");
  EXPECT_EQ(parse_model_info("f", metadata), info);
  metadata["ringlet.broken"] = "kept";
  EXPECT_TRUE(says(testing::message_of<FileError>([&] { parse_model_info("f", metadata); }),
                   {"ringlet.broken = 'kept'", "left out"}));
}

TEST(ModelInfo, HasANumberForEachChannelOrOneForAll) {
  ModelInfo info = example();
  info.channels = 3;
  EXPECT_EQ(parse_model_info("f", to_metadata(info)), info) << "as earlier versions wrote it";
  info.mean = data::PerChannel({0.485F, 0.456F, 0.406F});
  const Metadata metadata = to_metadata(info);
  EXPECT_EQ(metadata.at("ringlet.mean"), "0.485,0.456,0.406");
  EXPECT_EQ(metadata.at("ringlet.deviation"), "0.33333334");
  EXPECT_EQ(parse_model_info("f", metadata), info);
}

TEST(ModelInfo, IsPlainTextInShortestDecimals) {
  const Metadata metadata = to_metadata(example());
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(metadata.at("ringlet.samples"), "[60000,10000]");
  EXPECT_EQ(metadata.at("ringlet.input"), "[1,28,30]");
  EXPECT_EQ(metadata.at("ringlet.mean"), "0.1");
  EXPECT_EQ(metadata.at("ringlet.deviation"), "0.33333334");
  EXPECT_EQ(metadata.at("ringlet.classes"), "[\"T-shirt/top\",\"say \\\"hat\\\"\",\"Größe\"]");
}

TEST(ModelInfo, OfAFolderWhoseNameIsNoTextIsStillWritten) {
  ModelInfo info = example();
  info.data = "caf\xe9/data";
  EXPECT_EQ(parse_model_info("f", to_metadata(info))->data, "caf\xef\xbf\xbd/data");
}

TEST(ModelInfo, NamesTheTaskWhereItIsNotClassification) {
  EXPECT_EQ(to_metadata({.task = "prices"}),
            (Metadata{{"format", "pt"}, {"ringlet.task", "prices"}}));
  EXPECT_EQ(parse_model_info("f", to_metadata({.task = "prices"})), std::nullopt);
  ModelInfo info = example();
  const Metadata as_ever = to_metadata(info);
  info.task = "classification";
  EXPECT_EQ(to_metadata(info), as_ever);
  info.task = "ranking";
  EXPECT_EQ(parse_model_info("f", to_metadata(info)), info);
}

TEST(ModelInfo, IsAbsentInAFileOfPyTorchs) {
  EXPECT_EQ(parse_model_info("f", {}), std::nullopt);
  EXPECT_EQ(parse_model_info("f", {{"format", "pt"}}), std::nullopt);
  EXPECT_EQ(read_model_info(testing::testdata("oracle/init.safetensors")), std::nullopt);
}

struct Broken {
  const char* key;
  const char* text;  ///< null: the key is left out
};

class BrokenModelInfo : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenModelInfo, NamesTheFileAndTheText) {
  Metadata metadata = to_metadata(example());
  metadata.erase(GetParam().key);
  if (GetParam().text != nullptr) metadata[GetParam().key] = GetParam().text;
  const std::string message =
      testing::message_of<FileError>([&] { parse_model_info("folder/it", metadata); });
  EXPECT_TRUE(says(message, {"folder/it", GetParam().key}));
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenModelInfo,
    ::testing::Values(Broken{"ringlet.version", nullptr}, Broken{"ringlet.data", nullptr},
                      Broken{"ringlet.input", nullptr}, Broken{"ringlet.classes", nullptr},
                      Broken{"ringlet.mean", nullptr}, Broken{"ringlet.deviation", nullptr},
                      Broken{"ringlet.model", "lanet"}, Broken{"ringlet.model", ""},
                      Broken{"ringlet.input", "[1,28]"}, Broken{"ringlet.input", "[1,28,0]"},
                      Broken{"ringlet.input", "[1,28,-28]"}, Broken{"ringlet.input", "[1,28,1.5]"},
                      Broken{"ringlet.input", "[1,28,99999999999999999999]"},
                      Broken{"ringlet.samples", "[8]"}, Broken{"ringlet.samples", "[8,0]"},
                      Broken{"ringlet.samples", "[8,4294967296]"},
                      Broken{"ringlet.samples", "8 and 9"}, Broken{"ringlet.input", "1,28,28"},
                      Broken{"ringlet.input", "[[[[[[[[["}, Broken{"ringlet.classes", "[]"},
                      Broken{"ringlet.classes", "[\"a\",1]"},
                      Broken{"ringlet.classes", "{\"a\":1}"}, Broken{"ringlet.classes", "\"a\nb\""},
                      Broken{"ringlet.model", "a\nb"}, Broken{"ringlet.mean", "nan"},
                      Broken{"ringlet.mean", "0.1 "}, Broken{"ringlet.mean", "0.1,0.2"},
                      Broken{"ringlet.mean", "0.1,"}, Broken{"ringlet.deviation", "1,,1"},
                      Broken{"ringlet.mean", ""}, Broken{"ringlet.mean", "1e999"},
                      Broken{"ringlet.deviation", "0"}, Broken{"ringlet.deviation", "-1"},
                      Broken{"ringlet.deviation", "inf"}, Broken{"ringlet.background", "black"}));

TEST(ModelInfo, OfARunSaysWhatTheRunWas) {
  TrainOptions options = plain_options(1);
  options.recipe.normalize = true;
  const data::Splits data = formula_splits(64);
  const ModelInfo info = make_run_setup(options, data, 1).model;
  EXPECT_EQ(info.model, "lenet");
  EXPECT_EQ(info.data, "formula");
  EXPECT_EQ(info.train_samples, 64);
  EXPECT_EQ(info.test_samples, data.test->size());
  EXPECT_EQ(info.output_names, data.train->target_names());
  EXPECT_EQ(info.mean, static_cast<float>(data.train->statistics()[0].mean));
  EXPECT_EQ(info.deviation, static_cast<float>(data.train->statistics()[0].deviation));
  EXPECT_EQ(info.input().height, data.train->height());
  EXPECT_GT(info.background.value(), 0);

  options.recipe.normalize = false;
  const ModelInfo plain = make_run_setup(options, data, 1).model;
  EXPECT_EQ(plain.mean, 0);
  EXPECT_EQ(plain.deviation, 1);
}

TEST(ModelInfo, DoesNotKnowTheReplicas) {
  const data::Splits data = formula_splits(64);
  EXPECT_EQ(make_run_setup(exact_options(1), data, 1).model,
            make_run_setup(exact_options(4), data, 4).model);
}

}  // namespace
}  // namespace ringlet::train
