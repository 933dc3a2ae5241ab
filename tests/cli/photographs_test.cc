// Photographs, from a folder to an answer, as a user does it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/exif.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"
#include "train/files/safetensors.h"

namespace ringlet::testing {
namespace {

class PhotographsOfAUser : public ::testing::Test {
 protected:
  PhotographsOfAUser() { write_picture_folder(folder_ / "pictures"); }

  Arguments train(const Arguments& more = {}) const {
    return Arguments{"train", "--model",      "mlp", "--data",       pictures(), "--epochs",
                     "1",     "--batch-size", "5",   "--image-size", "16"} +
           more;
  }
  std::string pictures() const { return folder_ / "pictures"; }
  std::string out() const { return folder_ / "out"; }
  std::string model() const { return read_file(folder_ / "out/model.safetensors"); }

  TemporaryDirectory folder_;
};

TEST_F(PhotographsOfAUser, AreLearntEvaluatedReportedAndAskedFor) {
  const Outcome trained = ringlet(train({"--augment", "crop-flip", "--out", out()}));
  ASSERT_TRUE(succeeds(trained));
  EXPECT_TRUE(holds(trained.out, {"15 images of 3 x 16 x 16, 3 classes"}));
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out()});
  ASSERT_TRUE(succeeds(evaluated));
  EXPECT_TRUE(holds(evaluated.out, {"6 images of 3 x 16 x 16", "green"}));
  // What the run says of its last evaluation is what eval finds.
  const std::string all = evaluated.out.substr(evaluated.out.find("\nall "));
  EXPECT_NE(trained.out.find(all), std::string::npos) << trained.out << all;

  const std::string picture = pictures() + "/test/red/1.png";
  const Outcome asked = ringlet({"predict", "--json", "--checkpoint", out(), picture});
  ASSERT_TRUE(succeeds(asked));
  EXPECT_TRUE(holds(asked.out, {"shorter side of 18", "the middle 16 x 16"}));
  EXPECT_EQ(asked.out.find("inverted as"), std::string::npos);
  const std::string tilted = folder_ / "tilted.jpg";
  write_file(tilted, with_orientation(as_jpeg(gradient_image(16, 16, 3)), 6, true));
  EXPECT_TRUE(holds(ringlet({"predict", "--checkpoint", out(), tilted}).out,
                    {"(16 x 16)\n  turned upright, as its Exif data say\n"}));
  EXPECT_TRUE(succeeds(ringlet({"predict", "--checkpoint", out(), "--data", pictures()})));

  const std::string page = folder_ / "page.html";
  EXPECT_TRUE(succeeds(ringlet({"report", out(), "--out", page})));
  const std::string html = read_file(page);
  EXPECT_NE(html.find("confusion"), std::string::npos);
  const bool mistaken = html.find("Most wrong") != std::string::npos;
  EXPECT_EQ(html.find("data:image/png") != std::string::npos, mistaken);
}

// Weights that do not say what they are for: as the network was published, whatever the pictures
// beside those that are looked at.
TEST_F(PhotographsOfAUser, AreSeenByWeightsFromElsewhereAsTheNetworkWasPublished) {
  const Outcome trained =
      ringlet({"train", "--model", "resnet20", "--data", pictures(), "--image-size", "32",
               "--normalize", "imagenet", "--batch-size", "5", "--epochs", "1", "--out", out()});
  ASSERT_TRUE(succeeds(trained));
  const train::SafetensorsFile whole(out() + "/model.safetensors");
  std::vector<train::TensorToWrite> tensors;
  for (const auto& entry : whole.entries()) tensors.push_back({entry.spec, entry.bytes.data()});
  const std::string bare = folder_ / "bare.safetensors";
  train::write_safetensors(bare, tensors, {});
  const Arguments elsewhere{"--checkpoint", bare, "--model", "resnet20"};
  const auto all_of = [](const Outcome& outcome) {
    EXPECT_TRUE(succeeds(outcome));
    return outcome.out.substr(outcome.out.find("\nall "));
  };
  const std::string expected = all_of(ringlet({"eval", "--checkpoint", out()}));
  const Arguments eval = Arguments{"eval", "--data", pictures()} + elsewhere;
  EXPECT_EQ(all_of(ringlet(eval)), expected);
  EXPECT_EQ(all_of(ringlet(Arguments{"predict", "--data", pictures()} + elsewhere)), expected);
  std::filesystem::remove(pictures() + "/train/red/0.png");
  EXPECT_EQ(all_of(ringlet(eval)), expected) << "of other pictures to train on";
  std::filesystem::rename(pictures() + "/test", folder_ / "alone");
  const Outcome alone = ringlet(Arguments{"eval", "--data", folder_ / "alone"} + elsewhere);
  EXPECT_TRUE(holds(alone.out, {expected}));
  EXPECT_TRUE(holds(alone.err, {"the test is on all 6 pictures"}));

  const std::string picture = folder_ / "alone/red/1.png";
  const auto percents = [&](const Arguments& model) {
    const Outcome asked = ringlet(Arguments{"predict", "--json", "--top", "3", picture} + model);
    EXPECT_TRUE(succeeds(asked));
    const auto answers = parse_json(asked.out);
    std::vector<double> found;
    for (const auto& answer : answers.at("images").at(0).at("classes")) {
      found.push_back(answer.at("probability"));
    }
    return found;
  };
  EXPECT_EQ(percents(elsewhere), percents({"--checkpoint", out()}));
  const Outcome exported =
      ringlet(Arguments{"export", "--onnx", folder_ / "model.onnx"} + elsewhere);
  EXPECT_TRUE(
      holds(exported.out, {"3 x 32 x 32, pixels normalised as ImageNet's", "[N, 3, 32, 32]"}));
}

TEST_F(PhotographsOfAUser, WithoutAFolderToTrainOnAreNotBlamedOnAFlag) {
  std::filesystem::remove_all(pictures() + "/train");
  EXPECT_TRUE(fails_with(1, ringlet(train({"--out", out()})),
                         {"there is test, but no train", pictures() + "/test to take that alone"}));
}

TEST_F(PhotographsOfAUser, AreTheSameForAnyNumberOfWorkersAndFromACache) {
  ASSERT_TRUE(succeeds(ringlet(train({"--augment", "crop-flip", "--out", out()}))));
  const std::string expected = model();
  const std::string cache = folder_ / "pixels";
  for (const Arguments& flags :
       {Arguments{"--workers", "0"}, Arguments{"--workers", "4"}, Arguments{"--cache", "memory"},
        Arguments{"--cache", cache}, Arguments{"--cache", cache, "--workers", "3"}}) {
    ASSERT_TRUE(succeeds(
        ringlet(train(Arguments{"--augment", "crop-flip", "--out", out(), "--force"} + flags))));
    EXPECT_TRUE(model() == expected) << flags[1];
  }
}

TEST_F(PhotographsOfAUser, AreCutAtRandomFromACacheOfSmallerOnes) {
  const Arguments cuts{"--augment", "random-resized-crop", "--out", out(), "--force"};
  const Arguments smaller = cuts + Arguments{"--crop-from", "18"};
  ASSERT_TRUE(succeeds(ringlet(train(smaller))));
  const std::string expected = model();
  ASSERT_TRUE(succeeds(ringlet(train(smaller + Arguments{"--cache", folder_ / "pixels"}))));
  EXPECT_TRUE(model() == expected);
  EXPECT_TRUE(fails_with(2, ringlet(train(cuts + Arguments{"--cache", "memory"})),
                         {"random-resized-crop", "--crop-from 256"}));
}

TEST_F(PhotographsOfAUser, GoOnWithTheRunsOwnSettings) {
  const Arguments flags{"--augment", "random-resized-crop", "--normalize", "imagenet"};
  ASSERT_TRUE(succeeds(ringlet(train(flags + Arguments{"--out", out()}))));
  const std::string expected = model();
  const std::string again = folder_ / "again";
  ASSERT_TRUE(succeeds(ringlet(train(flags + Arguments{"--out", again, "--max-steps", "1"}))));
  ASSERT_TRUE(succeeds(ringlet({"train", "--resume", again})));
  EXPECT_TRUE(read_file(again + "/model.safetensors") == expected);
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", again, "--normalize", "data"}),
                         {"--normalize data", "the run has --normalize imagenet"}));
  const std::string config = out() + "/config.toml";
  ASSERT_TRUE(succeeds(ringlet({"train", "--config", config, "--out", again, "--force"})));
  EXPECT_TRUE(read_file(again + "/model.safetensors") == expected);
}

TEST_F(PhotographsOfAUser, MayMoveBetweenTwoStarts) {
  ASSERT_TRUE(succeeds(ringlet(train({"--crop-from", "18", "--augment", "random-resized-crop",
                                      "--max-steps", "1", "--out", out()}))));
  const std::string moved = folder_ / "elsewhere", page = folder_ / "page.html";
  std::filesystem::rename(pictures(), moved);
  EXPECT_TRUE(fails_with(2, ringlet({"train", "--resume", out()}),
                         {"in the folder '" + pictures() + "', which is not here", "--data"}));
  ASSERT_TRUE(succeeds(ringlet({"report", out(), "--out", page})));
  EXPECT_TRUE(holds(read_file(page), {"which is not here; say with --data-dir"}));

  const Outcome resumed = ringlet({"train", "--resume", out(), "--data", moved});
  ASSERT_TRUE(succeeds(resumed));
  EXPECT_EQ(resumed.err, "");
  ASSERT_TRUE(succeeds(ringlet({"train", "--resume", out()}))) << "it is known where they are now";
  std::filesystem::rename(moved, moved + "2");
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out(), "--data", moved + "2"});
  ASSERT_TRUE(succeeds(evaluated));
  EXPECT_EQ(evaluated.out.find("other data"), std::string::npos);
  EXPECT_TRUE(succeeds(ringlet({"predict", "--checkpoint", out(), "--data", moved + "2"})));
  const Arguments report{"report", out(), "--out", page, "--force", "--data-dir", moved + "2"};
  ASSERT_TRUE(succeeds(ringlet(report)));
  EXPECT_EQ(read_file(page).find("Not known here"), std::string::npos);
}

TEST_F(PhotographsOfAUser, MayNotBeOthersUnderTheSameNames) {
  for (const char* name : {"test/red/0.png", "test/red/1.png", "train/red/1.png"}) {
    const auto file = folder_ / "pictures" / name;
    write_file(file, read_file(file) + "ab");  // behind the picture's end
  }
  ASSERT_TRUE(succeeds(ringlet(train({"--max-steps", "1", "--out", out()}))));
  const auto spoil = [&](const char* name) {  // as long as it was
    const auto file = folder_ / "pictures" / name;
    std::string bytes = read_file(file);
    std::swap(bytes[bytes.size() - 1], bytes[bytes.size() - 2]);
    write_file(file, bytes);
  };
  spoil("test/red/1.png");
  const Outcome resumed = ringlet({"train", "--resume", out(), "--max-steps", "2"});
  EXPECT_EQ(resumed.code, 0);
  EXPECT_TRUE(holds(resumed.err, {"warning: the test data are others than before"}));
  spoil("test/red/0.png");
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out()});
  ASSERT_TRUE(succeeds(evaluated));
  EXPECT_TRUE(holds(evaluated.out, {"other data than the run's: 6 images", "(the run has 6 "}));
  spoil("train/red/1.png");
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", out()}),
                         {"was trained on other data than", "--data"}));
}

TEST_F(PhotographsOfAUser, ThatAreBrokenAreNamed) {
  write_file(folder_ / "pictures/train/green/2.png", "no picture");
  write_file(folder_ / "pictures/train/green/thumbs.db", "x");
  const Outcome ended = ringlet(train({"--normalize", "imagenet", "--workers", "2"}));
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(holds(ended.err, {"warning: ", "passed over 1 entry", "green/thumbs.db",
                                "error: ", "green/2.png: is no image"}));
  const Outcome went_on = ringlet(train({"--skip-broken"}));
  EXPECT_EQ(went_on.code, 0);
  EXPECT_TRUE(holds(went_on.err, {"left out", "green/2.png", "left out 1 of 15 pictures"}));
  EXPECT_TRUE(holds(went_on.out, {"14 images of 3 x 16 x 16"}));
}

TEST_F(PhotographsOfAUser, ThatWereDamagedUnseenBeforeTheStartAreLeftBehind) {
  data::Image noise{200, 200, 3, std::vector<std::uint8_t>(120000)};
  std::mt19937 random(1);
  for (std::uint8_t& value : noise.pixels) value = static_cast<std::uint8_t>(random());
  const std::string whole = as_png(noise), picture = pictures() + "/train/green/2.png";
  write_file(picture, whole.substr(0, 90000));  // the start looks at 64 KiB
  const Outcome ended = ringlet(train({"--normalize", "imagenet", "--out", out()}));
  EXPECT_TRUE(fails_with(1, ended,
                         {"green/2.png", "cut off", "once the file is what it was at the start",
                          "--resume " + out() + " goes on; if it was damaged then, --init " +
                              out() + "/state --skip-broken begins anew from there"}));
  const Outcome anew = ringlet(train({"--normalize", "imagenet", "--init", out() + "/state",
                                      "--skip-broken", "--out", folder_ / "anew"}));
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_TRUE(holds(anew.out, {"14 images of 3 x 16 x 16"}));
  write_file(picture, whole);
  EXPECT_TRUE(fails_with(1, ringlet({"train", "--resume", out()}), {"trained on other data"}));
}

TEST_F(PhotographsOfAUser, ThatWereLeftOutAreLeftOutWhereverTheRunIsReadAgain) {
  write_file(folder_ / "pictures/train/green/2.png", "no picture");
  write_file(folder_ / "pictures/test/red/1.png", "no picture");
  const Arguments half{"--max-steps", "1", "--skip-broken", "--out", out()};
  ASSERT_EQ(ringlet(train(half)).code, 0);
  const auto leaves_out = [](const Outcome& outcome, const std::string& picture) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("left out"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(picture), std::string::npos) << outcome.err;
  };
  leaves_out(ringlet({"train", "--resume", out()}), "green/2.png");
  EXPECT_NE(read_file(out() + "/config.toml").find("skip-broken = true"), std::string::npos);
  const Outcome evaluated = ringlet({"eval", "--checkpoint", out()});
  leaves_out(evaluated, "red/1.png");
  EXPECT_TRUE(holds(evaluated.out, {"5 images of 3 x 16 x 16"}));
  EXPECT_EQ(evaluated.err.find("green/2.png"), std::string::npos) << "nobody reads that one";
  const Arguments ask{"predict", "--checkpoint", out(), "--data", pictures()};
  leaves_out(ringlet(ask), "red/1.png");
  leaves_out(ringlet(ask + Arguments{"--split", "train"}), "green/2.png");
  const std::string page = folder_ / "page.html";
  EXPECT_EQ(ringlet({"report", out(), "--out", page}).code, 0);
  EXPECT_NE(read_file(page).find("confusion"), std::string::npos);
}

TEST_F(PhotographsOfAUser, AreLeftOutOfAnEvaluationWhereTold) {
  ASSERT_TRUE(succeeds(ringlet(train({"--out", out()}))));
  write_file(folder_ / "pictures/test/red/1.png", "no picture");
  EXPECT_TRUE(fails_with(1, ringlet({"eval", "--checkpoint", out()}), {"red/1.png"}));
  const Outcome told = ringlet({"eval", "--checkpoint", out(), "--skip-broken"});
  EXPECT_EQ(told.code, 0);
  EXPECT_TRUE(holds(told.out, {"5 images of 3 x 16 x 16"}));
}

/// Whether a row of the table by class says so many right ones of so many.
std::string row_of(const std::string& out, const std::string& name) {
  const auto at = out.find("\n" + name + " ");
  return at == std::string::npos ? "" : out.substr(at + 1, out.find('\n', at + 1) - at - 1);
}

/// A model of the classes blue, green and red.
class PhotographsUnderOtherClasses : public PhotographsOfAUser {
 protected:
  PhotographsUnderOtherClasses() { EXPECT_TRUE(succeeds(ringlet(train({"--out", out()})))); }
  /// Both commands that score, on a folder; predict's output without the line that eval has more.
  std::vector<Outcome> scores(const std::string& folder) const {
    return {ringlet({"eval", "--checkpoint", out(), "--data", folder}),
            ringlet({"predict", "--checkpoint", out(), "--data", folder})};
  }
};

TEST_F(PhotographsUnderOtherClasses, AreRefusedWithBothLists) {
  for (const char* split : {"train", "test"}) {
    std::filesystem::rename(folder_ / "pictures" / split / "red",
                            folder_ / "pictures" / split / "amber");
  }
  for (const Outcome& outcome : scores(pictures())) {
    EXPECT_TRUE(fails_with(2, outcome, {"blue, green, red", "amber, blue, green"}));
  }
}

TEST_F(PhotographsUnderOtherClasses, AreScoredByNameWhereSomeAreMissing) {
  const std::string whole = scores(pictures())[0].out;
  const std::string some = folder_ / "some";
  std::filesystem::copy(pictures(), some, std::filesystem::copy_options::recursive);
  for (const char* split : {"train", "test"})
    std::filesystem::remove_all(some + "/" + split + "/blue");
  for (const Outcome& outcome : scores(some)) {
    ASSERT_TRUE(succeeds(outcome));
    EXPECT_EQ(row_of(outcome.out, "green"), row_of(whole, "green"));
    EXPECT_EQ(row_of(outcome.out, "red"), row_of(whole, "red"));
    EXPECT_EQ(row_of(outcome.out, "blue"), "");
    EXPECT_TRUE(holds(outcome.out, {"4 images of 3 x 16 x 16, 2 classes"}));
  }
}

TEST_F(PhotographsUnderOtherClasses, AreScoredByNameInAnyOrder) {
  const std::string file = out() + "/model.safetensors";
  std::string bytes = read_file(file);
  const auto rename = [&](const std::string& names, const std::string& others) {
    const auto at = bytes.find(names);
    ASSERT_NE(at, std::string::npos) << bytes.substr(0, 2000);
    write_file(file, bytes.replace(at, names.size(), others));
  };
  const std::string before = scores(pictures())[0].out;
  rename(R"([\"blue\",\"green\",\"red\"])", R"([\"red\",\"green\",\"blue\"])");
  for (const char* split : {"train", "test"}) {  // what the model calls red now, is blue
    const std::filesystem::path folder = folder_ / "pictures" / split;
    std::filesystem::rename(folder / "blue", folder / "other");
    std::filesystem::rename(folder / "red", folder / "blue");
    std::filesystem::rename(folder / "other", folder / "red");
  }
  for (const Outcome& outcome : scores(pictures())) {
    ASSERT_TRUE(succeeds(outcome));
    const auto numbers = [](const std::string& row) {
      return row.substr(row.find_first_of("0123456789"));
    };
    EXPECT_EQ(numbers(row_of(outcome.out, "blue")), numbers(row_of(before, "red")));
    EXPECT_EQ(row_of(outcome.out, "all"), row_of(before, "all"));
  }
}

}  // namespace
}  // namespace ringlet::testing
