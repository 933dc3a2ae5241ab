// Folders of pictures as they lie: which part is which, which pictures are alike, and how one
// folder becomes pictures to train on and pictures to test on.
#include "data/picture_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/data_error.h"
#include "data/image_folder.h"
#include "data/open_dataset.h"
#include "data/picture_parts.h"
#include "tests/support/picture_folder.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::as_jpeg;
using testing::as_png;
using testing::message_of;
using testing::says;
using testing::TemporaryDirectory;
using testing::write_file;

/// A picture of soft spots that no other seed has.
Image spots(unsigned seed, int width = 96, int height = 72, int lighter = 0) {
  std::mt19937 random(seed);
  constexpr int kSpots = 12;
  double spot[kSpots][5];
  for (auto& one : spot) {
    for (double& number : one) number = static_cast<double>(random() % 1000) / 1000;
  }
  Image image{width, height, 3, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double level[3] = {60, 60, 60};
      for (const auto& one : spot) {
        const double across = (x + 0.5) / width - one[0], down = (y + 0.5) / height - one[1];
        const double light = 130 * std::exp(-(across * across + down * down) / 0.02);
        for (int c = 0; c < 3; ++c) level[c] += light * one[2 + c];
      }
      for (const double one : level) {
        image.pixels.push_back(static_cast<std::uint8_t>(std::clamp(one + lighter, 0.0, 255.0)));
      }
    }
  }
  return image;
}

class PicturesAsTheyLie : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((root_ / name).parent_path());
    write_file(root_ / name, bytes);
  }
  /// Classes cat, dog and owl of 10, 20 and 5 pictures.
  void put_classes(const std::string& below = "") const {
    unsigned seed = 1;
    for (const auto& [name, count] : {std::pair{"cat", 10}, {"dog", 20}, {"owl", 5}}) {
      for (int i = 0; i < count; ++i) {
        put(below + name + "/" + std::to_string(i) + ".png", as_png(spots(seed++, 24, 18)));
      }
    }
  }
  Splits load(ImageFolderOptions options = {}) const {
    options.image_size = 8;
    return load_image_folder(root_, options);
  }
  std::string error(const ImageFolderOptions& options = {}) const {
    return message_of<DataError>([&] { load(options); });
  }
  PicturePrint print(const std::string& bytes) const {
    put("picture", bytes);
    return print_picture(root_ / "picture");
  }
  bool are_alike(const std::string& a, const std::string& b) const {
    const PicturePrint both[] = {print(a), print(b)};
    return alike(both, true)[1] == 0;
  }

  TemporaryDirectory folder_;
  const fs::path root_ = folder_.path() / "photos";
};

std::vector<std::int64_t> counts(const Dataset& set) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(set.target_values()));
  for (const std::int32_t target : set.targets()) ++counts[static_cast<std::size_t>(target)];
  return counts;
}

/// The pictures of a set, whatever their order.
std::set<std::vector<std::uint8_t>> pictures_of(const Dataset& set) {
  std::set<std::vector<std::uint8_t>> pictures;
  for (std::int64_t i = 0; i < set.size(); ++i) pictures.insert(set.image(i));
  return pictures;
}

using Counts = std::vector<std::int64_t>;

TEST_F(PicturesAsTheyLie, AreSplitClassByClass) {
  put_classes();
  EXPECT_TRUE(is_picture_folder(root_.string()));
  EXPECT_TRUE(is_split(root_.string()));
  const Splits splits = open_dataset(root_.string(), {.pictures = {.image_size = 8}});
  EXPECT_EQ(splits.train->target_names(), (std::vector<std::string>{"cat", "dog", "owl"}));
  EXPECT_EQ(counts(*splits.train), (Counts{8, 16, 4}));
  EXPECT_EQ(counts(*splits.test), (Counts{2, 4, 1}));
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(
      says(splits.notes[0], {"photos: there is neither val nor test, so 7 of 35 pictures are "
                             "tested on, and not trained on (--split 0.2)"}));
  EXPECT_EQ(counts(*load({.split = 0.5}).test), (Counts{5, 10, 3}));
  EXPECT_EQ(counts(*load({.split = 0.001}).test), (Counts{1, 1, 1}));
  EXPECT_EQ(counts(*load({.split = 0.999}).train), (Counts{1, 1, 1}));
  // Nothing is on both sides, and nothing is lost.
  auto all = pictures_of(*splits.train);
  EXPECT_EQ(all.size(), 28U);
  all.merge(pictures_of(*splits.test));
  EXPECT_EQ(all.size(), 35U);
}

TEST_F(PicturesAsTheyLie, AreSplitByWhatIsInThem) {
  put_classes();
  const auto before = pictures_of(*load().test);
  fs::rename(root_ / "cat/0.png", root_ / "cat/z.png");
  fs::rename(root_ / "dog/19.png", root_ / "dog/a.png");
  fs::rename(root_, folder_ / "elsewhere");
  fs::rename(folder_ / "elsewhere", root_);
  EXPECT_EQ(pictures_of(*load().test), before) << "neither names nor order nor place count";
  // With one more picture of a class at most one picture of that class changes its side.
  put("cat/new.png", as_png(spots(99, 24, 18)));
  int changed = 0;
  for (const auto& picture : pictures_of(*load().test)) changed += before.contains(picture) ? 0 : 1;
  EXPECT_LE(changed, 1);
}

TEST_F(PicturesAsTheyLie, ThatAreAlikeLieOnOneSide) {
  put_classes();
  for (unsigned i = 0; i < 12; ++i) {  // each picture thrice: equal, and compressed
    const Image image = spots(200 + i);
    const std::string name = "cat/more" + std::to_string(i);
    put(name + ".png", as_png(image));
    put(name + "b.png", as_png(image));
    put(name + "c.jpg", as_jpeg(spots(200 + i, 64, 48)));
  }
  const Splits splits = load({.split = 0.5});
  EXPECT_TRUE(says(splits.notes[0], {"36 that are like another one lie on its side"}));
  EXPECT_EQ(splits.train->size() + splits.test->size(), 71);
  EXPECT_NEAR(static_cast<double>(counts(*splits.test)[0]), 23, 2);
  // Which of them are tested on: of each picture all three, or none.
  std::vector<fs::path> files;
  std::vector<std::int32_t> labels;
  for (unsigned i = 0; i < 12; ++i) {
    for (const char* ending : {".png", "b.png", "c.jpg"}) {
      files.push_back(root_ / ("cat/more" + std::to_string(i) + ending));
      labels.push_back(0);
    }
  }
  const auto prints = print_pictures(files);
  const PictureSplit split = split_pictures("photos", {"cat"}, labels, prints, 0.3);
  ASSERT_EQ(split.test.size(), 12U);
  for (std::size_t i = 0; i < split.test.size(); i += 3) {
    EXPECT_EQ(split.test[i] % 3, 0);
    EXPECT_EQ(split.test[i + 2], split.test[i] + 2);
  }
}

TEST_F(PicturesAsTheyLie, AreAlikeWhereTheyWereSavedAgain) {
  const std::string picture = as_png(spots(1));
  EXPECT_TRUE(are_alike(picture, picture));
  EXPECT_TRUE(are_alike(picture, testing::as_bmp(spots(1)))) << "the same pixels";
  EXPECT_TRUE(are_alike(picture, as_jpeg(spots(1)))) << "compressed";
  EXPECT_TRUE(are_alike(picture, as_png(spots(1, 48, 36)))) << "half as large";
  EXPECT_TRUE(are_alike(picture, as_png(spots(1, 96, 72, kMostLevels - 1)))) << "hardly lighter";
  EXPECT_FALSE(are_alike(picture, as_png(spots(1, 96, 72, kMostLevels + 2)))) << "lighter";
  EXPECT_FALSE(are_alike(picture, as_png(spots(2))));
  Image other = spots(1);
  for (std::size_t i = 0; i < other.pixels.size() / 3; ++i)
    std::swap(other.pixels[3 * i], other.pixels[3 * i + 2]);
  EXPECT_FALSE(are_alike(picture, as_png(other))) << "red and blue swapped";
  EXPECT_TRUE(are_alike("broken", "broken"));
  EXPECT_FALSE(are_alike("broken", "otherwise broken"));
}

TEST_F(PicturesAsTheyLie, OfTwoClassesAreTrainedOnWhereTheyAreAlike) {
  put_classes();
  for (unsigned i = 0; i < 4; ++i) {
    put("cat/same" + std::to_string(i) + ".png", as_png(spots(300 + i)));
    put("dog/same" + std::to_string(i) + ".png", as_png(spots(300 + i)));
  }
  const Splits splits = load({.split = 0.999});
  EXPECT_EQ(counts(*splits.train), (Counts{4, 4, 1}));
}

TEST_F(PicturesAsTheyLie, LeaveNoClassWithoutATest) {
  put_classes();
  put("eel/only.png", as_png(spots(500)));
  EXPECT_TRUE(says(error(), {"photos: the class eel has one picture, and a split takes two",
                             "add others, remove the class", "val/CLASS"}));
  const Splits splits = load({.allow_unseen_targets = true});
  EXPECT_EQ(counts(*splits.train)[2], 1) << "it is trained on";
  put("eel/again.jpg", as_jpeg(spots(500)));
  EXPECT_TRUE(says(error(), {"the 2 pictures of the class eel cannot be split: they are alike"}));
  put("eel/other.png", as_png(spots(501)));
  EXPECT_EQ(counts(*load().test)[2], 1);
}

TEST_F(PicturesAsTheyLie, AreSplitBelowTrainWhereNothingIsThereToTestOn) {
  put_classes("Train/");
  const Splits splits = load();
  EXPECT_EQ(splits.test->size(), 7);
  EXPECT_TRUE(says(splits.notes[0], {"photos/Train: there is neither val nor test"}));
  put("VALID/dog/0.png", as_png(spots(600)));
  EXPECT_EQ(load({.allow_unseen_targets = true}).test->size(), 1);
  EXPECT_TRUE(says(error({.split = 0.2}), {"--split is for a folder without pictures to test on",
                                           "there is VALID; leave it out"}));
}

TEST_F(PicturesAsTheyLie, HavePartsUnderAnySpelling) {
  const auto parts = [&](const char* train, const char* test) {
    fs::remove_all(root_);
    fs::create_directories(root_ / train / "cat");
    fs::create_directories(root_ / test / "cat");
    const PictureParts found = find_parts(root_);
    return found.train.filename().string() + "+" + found.test.filename().string();
  };
  for (const char* train : {"train", "Train", "TRAIN", "training"}) {
    for (const char* test : {"val", "Val", "valid", "validation", "test", "Test", "testing"}) {
      EXPECT_EQ(parts(train, test), std::string(train) + "+" + test);
    }
  }
  fs::create_directories(root_ / "train/cat");
  EXPECT_TRUE(says(error(), {"there are both train and training", "put their pictures together"}));
}

TEST_F(PicturesAsTheyLie, MayHaveAClassThatIsCalledLikeAPart) {
  put_classes();
  put("train/engine.png", as_png(spots(700)));
  put("train/wagon.png", as_png(spots(701)));
  EXPECT_EQ(load().train->target_names(), (std::vector<std::string>{"cat", "dog", "owl", "train"}));
  put("train/steam/engine.png", as_png(spots(702)));  // with a folder it is a part
  const PictureParts parts = find_parts(root_);
  EXPECT_EQ(parts.train.filename(), "train");
  ASSERT_EQ(parts.notes.size(), 1U);
  EXPECT_TRUE(
      says(parts.notes[0], {"the pictures in cat are not looked at, since there is train"}));
}

TEST_F(PicturesAsTheyLie, AreAllTestedOnByAModelOfOthers) {
  put_classes();
  EXPECT_EQ(load({.only_test = true}).test->size(), 35);
  EXPECT_EQ(load({.split = 0.2, .only_test = true}).test->size(), 7);
}

TEST_F(PicturesAsTheyLie, LeaveOutWhatIsBrokenWhereTold) {
  put_classes();
  put("cat/broken.png", "no picture");
  EXPECT_EQ(load().train->size() + load().test->size(), 36) << "it is told when it is read";
  const Splits splits = load({.skip_broken = true});
  EXPECT_EQ(splits.train->size() + splits.test->size(), 35);
  EXPECT_TRUE(says(splits.notes[0], {"left out", "cat/broken.png"}));
}

TEST_F(PicturesAsTheyLie, BesideTheClassesAreTold) {
  put_classes();
  put("alone.png", as_png(spots(800)));
  put("cat.txt", "a class that is a file");
  const Splits splits = load();
  ASSERT_EQ(splits.notes.size(), 3U);
  EXPECT_TRUE(says(splits.notes[0], {"passed over 1 entry that is hidden or no picture: cat.txt"}));
  EXPECT_TRUE(
      says(splits.notes[1], {"passed over 1 picture that lies beside the folders of classes:"
                             " alone.png; move each into the folder of its class"}));
}

TEST_F(PicturesAsTheyLie, OfOneClassAreRefused) {
  put("cat/a.png", as_png(spots(1)));
  put("cat/b.png", as_png(spots(2)));
  EXPECT_TRUE(says(error(), {"all pictures are in one folder, cat, and so of one class"}));
}

}  // namespace
}  // namespace ringlet::data
