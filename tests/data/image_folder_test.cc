// Folders of pictures: which files are which samples, what is told of the others, and what a model
// sees of them.
#include "data/image_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <tuple>

#include "base/data_error.h"
#include "data/images/centre_crop.h"
#include "data/images/picture_reader.h"
#include "data/open_dataset.h"
#include "data/picture_list.h"
#include "tests/support/exif.h"
#include "tests/support/picture_folder.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::as_jpeg;
using testing::as_png;
using testing::gradient_image;
using testing::message_of;
using testing::says;
using testing::TemporaryDirectory;
using testing::write_file;
using testing::write_picture_folder;

class ImageFolder : public ::testing::Test {
 protected:
  ImageFolder() { write_picture_folder(root_); }

  void put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((root_ / name).parent_path());
    write_file(root_ / name, bytes);
  }
  Splits load(const ImageFolderOptions& options = {.image_size = 16}) const {
    return load_image_folder(root_, options);
  }
  std::string error(const ImageFolderOptions& options = {.image_size = 16}) const {
    return message_of<DataError>([&] { load(options); });
  }

  TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST(ImageEndings, InMessagesAreThoseThatAreRead) {
  std::istringstream words(kImageEndings);
  int endings = 0;
  for (std::string word; words >> word; ++endings) {
    if (word.back() == ',') word.pop_back();
    EXPECT_TRUE(has_image_name("a" + word)) << word;
  }
  EXPECT_EQ(endings, 10);
}

TEST_F(ImageFolder, NumbersClassesAndPicturesByCodePoint) {
  put("train/Zebra/b.PNG", as_png(gradient_image(9, 9, 3)));  // before the small letters
  put("train/Zebra/below/a.jpeg", as_jpeg(gradient_image(9, 9, 3)));
  put("train/\xc3\xa4pfel/0.png", as_png(gradient_image(9, 9, 3)));  // behind them
  put("test/Zebra/b.png", as_png(gradient_image(9, 9, 3)));
  put("test/\xc3\xa4pfel/b.png", as_png(gradient_image(9, 9, 3)));
  const Splits splits = load();
  EXPECT_EQ(splits.train->target_names(),
            (std::vector<std::string>{"Zebra", "blue", "green", "red", "\xc3\xa4pfel"}));
  EXPECT_EQ(splits.test->target_names(), splits.train->target_names());
  const std::vector<std::int32_t> labels(splits.train->targets().begin(),
                                         splits.train->targets().end());
  EXPECT_EQ(labels,
            (std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4}));
  EXPECT_EQ(splits.train->channels(), 3);
  EXPECT_EQ(splits.train->height(), 16);
  EXPECT_TRUE(splits.notes.empty());
}

TEST_F(ImageFolder, GivesTheMiddleOfThePicture) {
  const Splits splits = load();
  PictureReader reader;
  Resampler resampler;
  std::vector<std::uint8_t> expected(3 * 16 * 16);
  centre_crop(reader.load(root_ / "train/green/3.png", true), 16, resampler, {expected.data()});
  EXPECT_EQ(splits.train->image(5 + 3), expected);
}

TEST(CentreCrop, IsTorchvisionsResizeAndCenterCrop) {
  EXPECT_EQ(resized_short_edge(224), 256);
  EXPECT_EQ(resized_short_edge(128), 146);
  EXPECT_EQ(resized_short_edge(32), 36);
  std::vector<std::uint8_t> rgbx(std::size_t{101} * 67 * 4);
  for (std::size_t i = 0; i < rgbx.size(); ++i) rgbx[i] = static_cast<std::uint8_t>(i * i / 7);
  const RgbxView high{rgbx.data(), 67, 101, 67 * 4};
  std::vector<std::uint8_t> ours(3 * 32 * 32), expected(ours);
  Resampler resampler;
  centre_crop(high, 32, resampler, {ours.data()});
  // int(36 * 101 / 67) = 54 rows, of which 11 = (54 - 32) / 2 are above; 2 = (36 - 32) / 2.
  resampler.resize(high, 36, 54, {2, 11, 32, 32}, {expected.data()});
  EXPECT_EQ(ours, expected);
  const RgbxView wide{rgbx.data(), 101, 67, 101 * 4};
  centre_crop(wide, 29, resampler, {ours.data()});
  // 33 rows and int(33 * 101 / 67) = 49 columns; 20 / 2 = 10, 4 / 2 = 2.
  resampler.resize(wide, 49, 33, {10, 2, 29, 29}, {expected.data()});
  EXPECT_EQ(ours, expected);
}

TEST_F(ImageFolder, TakesAPictureOfTheModelsSizeAsItIs) {
  const Image image = gradient_image(16, 16, 3);
  put("train/blue/0.png", as_png(image));
  const std::vector<std::uint8_t> planes = load().train->image(0);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    ASSERT_EQ(planes[i], image.pixels[i % 256 * 3 + i / 256]);
  }
}

TEST_F(ImageFolder, TellsWhatItPassesOver) {
  put("train/.DS_Store", "x");
  put("train/blue/.hidden.png", "x");
  put("train/blue/notes.txt", "x");
  put("train/readme.md", "x");
  const Splits splits = load();
  EXPECT_EQ(splits.train->size(), 15);
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0],
                   {"train: passed over 4 entries that are hidden or no picture: .DS_Store, "
                    "blue/.hidden.png, blue/notes.txt, ..."}));
}

TEST_F(ImageFolder, TellsOfPicturesWithEndingsThatAreNotRead) {
  put("train/blue/a.gif", "x");
  put("train/blue/b.GIF", "x");
  put("train/red/below/c.heic", "x");
  const Splits splits = load();
  EXPECT_EQ(splits.train->size(), 15);
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(
      says(splits.notes[0], {"train: passed over pictures", "2 .gif in blue, 1 .heic in red",
                             "save them as PNG or JPEG"}));
  put("train/violet/a.heic", "x");
  EXPECT_TRUE(says(error(), {"train: there is no picture of violet", "1 .heic in violet;"}));
}

TEST_F(ImageFolder, FollowsLinksButNotInCircles) {
  fs::create_directory_symlink(root_ / "train/blue", root_ / "train/blue/again");
  fs::create_directory_symlink(root_ / "train/red", root_ / "train/blue/others");
  EXPECT_EQ(load().train->size(), 20);
}

TEST_F(ImageFolder, RefusesAClassWithoutAPicture) {
  fs::create_directory(root_ / "train/void");
  EXPECT_TRUE(says(error(), {"train: there is no picture", "void", "--allow-empty-classes"}));
  const Splits splits = load({.image_size = 16, .allow_unseen_targets = true});
  EXPECT_EQ(splits.train->target_values(), 4);
  EXPECT_EQ(splits.test->target_values(), 4);
}

TEST_F(ImageFolder, RefusesAClassWhoseNameIsNotUtf8) {
  put("train/\xe9t\xe9/a.png", as_png(gradient_image(9, 9, 3)));
  put("val/\xe9t\xe9/a.png", as_png(gradient_image(9, 9, 3)));
  EXPECT_TRUE(
      says(error(), {"the name of the class \\xe9t\\xe9 is not UTF-8", "rename the folder"}));
}

TEST_F(ImageFolder, RefusesAFolderThatLacksAPart) {
  put("test/violet/0.png", as_png(gradient_image(9, 9, 3)));
  EXPECT_TRUE(says(error(), {"test: the class violet", "not among the training images"}));
  fs::remove_all(root_ / "test");
  fs::create_directory(root_ / "test");
  EXPECT_TRUE(says(error(), {"test: there is no picture", "blue"}));
}

TEST_F(ImageFolder, TestsOnValWhereThereAreBoth) {
  put("val/blue/0.png", as_png(gradient_image(9, 9, 3)));
  const Splits splits = load({.image_size = 16, .allow_unseen_targets = true});
  EXPECT_EQ(splits.test->size(), 1);
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0], {"tests on val", "test is not looked at"}));
}

TEST_F(ImageFolder, NamesABrokenFile) {
  put("train/green/1.png", as_png(gradient_image(30, 30, 3)).substr(0, 200));
  const Splits splits = load();  // the names alone say nothing
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_TRUE(says(message_of<DataError>([&] { splits.train->image(6); }),
                   {"train/green/1.png", "cut off or damaged"}));
}

TEST_F(ImageFolder, LeavesOutWhatIsBrokenWhereTold) {
  put("train/green/1.png", as_png(gradient_image(30, 30, 3)).substr(0, 200));
  put("train/red/x.jpg", "no picture at all");
  const Splits splits = load({.image_size = 16, .skip_broken = true});
  EXPECT_EQ(splits.train->size(), 14);
  ASSERT_EQ(splits.notes.size(), 3U);
  EXPECT_TRUE(says(splits.notes[0], {"left out", "green/1.png", "cut off"}));
  EXPECT_TRUE(says(splits.notes[1], {"left out", "red/x.jpg", "is no image"}));
  EXPECT_TRUE(says(splits.notes[2], {"train: left out 2 of 16 pictures"}));
}

TEST_F(ImageFolder, LooksForWhatIsBrokenOnlyWhereItIsRead) {
  put("train/green/1.png", "broken");
  put("test/green/1.png", "broken");
  const Splits splits = load({.image_size = 16, .skip_broken = true, .only_test = true});
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_EQ(splits.test->size(), 5);
  ASSERT_EQ(splits.notes.size(), 2U);
  EXPECT_TRUE(says(splits.notes[1], {"test: left out 1 of 6 pictures"}));
}

TEST_F(ImageFolder, TurnsPicturesAsToldAndSaysSoInItsHash) {
  const std::string plain = as_jpeg(gradient_image(16, 16, 3));
  put("train/blue/0.jpg", testing::with_orientation(plain, 3, true));
  const Splits upright = load(), stored = load({.image_size = 16, .exif = false});
  EXPECT_NE(upright.train->image(0), stored.train->image(0));
  EXPECT_NE(upright.train->hash(), stored.train->hash());
}

TEST_F(ImageFolder, HashesNamesAndBytes) {
  const Splits splits = load();
  const std::uint64_t before = splits.train->hash();
  EXPECT_EQ(load().train->hash(), before);
  EXPECT_NE(load({.image_size = 17}).train->hash(), before);
  const fs::path file = root_ / "train/blue/0.png";
  std::string bytes = testing::read_file(file);
  ++bytes[bytes.size() / 2];
  write_file(file, bytes);  // as long as before
  EXPECT_NE(load().train->hash(), before);
  EXPECT_EQ(load().test->hash(), splits.test->hash());
  --bytes[bytes.size() / 2];
  write_file(file, bytes);
  EXPECT_EQ(load().train->hash(), before);
  fs::rename(root_ / "train/red/4.png", root_ / "train/red/5.png");
  EXPECT_NE(load().train->hash(), before);
}

TEST_F(ImageFolder, IsTheSameWhereverACopyLiesAndWhateverItsTimes) {
  const testing::TemporaryDirectory elsewhere;
  fs::copy(root_, elsewhere / "copy", fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(elsewhere / "copy")) {
    fs::last_write_time(entry, fs::last_write_time(entry) + std::chrono::hours(1));
  }
  const Splits here = load(), there = load_image_folder(elsewhere / "copy", {.image_size = 16});
  EXPECT_EQ(there.train->hash(), here.train->hash());
  EXPECT_EQ(there.train->contents(), here.train->contents());
  EXPECT_NE(there.train->description(), here.train->description());
}

TEST_F(ImageFolder, IsKnownByTheHashOfEarlierVersionsToo) {
  const Splits before = load();
  EXPECT_NE(before.train->former_hash(), before.train->hash());
  EXPECT_TRUE(before.train->is_known_as(before.train->hash()));
  EXPECT_TRUE(before.train->is_known_as(before.train->former_hash()));
  EXPECT_FALSE(before.train->is_known_as(before.test->hash()));
  const fs::path file = root_ / "train/blue/0.png";
  write_file(file, std::string(fs::file_size(file), 'x'));
  EXPECT_EQ(load().train->former_hash(), before.train->former_hash());  // names and sizes alone
  write_file(file, "y");
  EXPECT_NE(load().train->former_hash(), before.train->former_hash());
}

TEST_F(ImageFolder, MeasuresItsPixels) {
  const auto statistics = load().train->statistics();
  ASSERT_EQ(statistics.size(), 3U);
  for (const PixelStatistics& channel : statistics) {
    EXPECT_GT(channel.mean, 0.2);
    EXPECT_LT(channel.mean, 0.8);
    EXPECT_GT(channel.deviation, 0.1);
  }
}

TEST_F(ImageFolder, CutsRandomPartsFromTheWholePicture) {
  const Splits splits = load();
  PictureReader reader;
  Resampler resampler;
  std::vector<std::uint8_t> expected(3 * 16 * 16), image(expected);
  for (std::uint64_t key = 0; key < 5; ++key) {
    const RgbxView picture = reader.load(root_ / "train/blue/4.png", true);
    Random random(key);
    const Cut cut = draw_random_resized_crop(picture.width, picture.height, random);
    resampler.resize(picture.cropped(cut.box), 16, 16, {0, 0, 16, 16},
                     {expected.data(), 3, cut.mirrored});
    splits.train->read_varied(4, {Augment::random_resized_crop, key}, image);
    EXPECT_EQ(image, expected);
  }
}

TEST_F(ImageFolder, CutsRandomPartsFromAPictureOfItsSize) {
  constexpr int kFrom = 22;  // of the picture's 25, but not of another's 20
  const Splits splits = load({.image_size = 16, .crop_from = kFrom}), whole = load();
  EXPECT_NE(splits.train->hash(), whole.train->hash());
  EXPECT_EQ(splits.test->hash(), whole.test->hash());
  PictureReader reader;
  Resampler resampler;
  std::vector<std::uint8_t> expected(3 * 16 * 16), image(expected), kept;
  const auto smaller = [&](const char* name, int width, int height) {
    std::vector<std::uint8_t> planes(3 * static_cast<std::size_t>(width * height));
    resampler.resize(reader.load(root_ / name, true), width, height, {0, 0, width, height},
                     {planes.data()});
    return planes;
  };
  for (const auto& [index, name, width, height] :
       {std::tuple{4, "train/blue/4.png", kFrom * 36 / 25, kFrom},
        std::tuple{3, "train/blue/3.png", 33, 20}}) {
    const std::vector<std::uint8_t> planes = smaller(name, width, height);
    for (std::uint64_t key = 0; key < 5; ++key) {
      Random random(key);
      resize_cut({planes.data(), 3, height, width}, draw_random_resized_crop(width, height, random),
                 16, 16, expected);
      const Variation variation{Augment::random_resized_crop, key};
      splits.train->read_varied(index, variation, image);
      EXPECT_EQ(image, expected) << name;
      splits.train->keep(index, kept);
      splits.train->vary_kept(kept, variation, image);
      EXPECT_EQ(image, expected) << name << " from a cache";
    }
    EXPECT_EQ(splits.train->image(index), whole.train->image(index));
    kept.pop_back();
    EXPECT_THROW(splits.train->vary_kept(kept, {Augment::random_resized_crop, 1}, image),
                 DataError);
  }
}

TEST_F(ImageFolder, IsWhatDataNamesUnlessThereAreIdxFiles) {
  EXPECT_TRUE(is_picture_folder(root_.string()));
  EXPECT_EQ(open_dataset(root_.string(), {.pictures = {.image_size = 8}}).train->width(), 8);
  EXPECT_EQ(open_dataset(root_.string()).train->width(), 224);
  EXPECT_TRUE(is_picture_folder((root_ / "train").string()));
  EXPECT_FALSE(is_picture_folder((root_ / "train/blue").string()));
}

TEST_F(ImageFolder, MayHaveIdentitiesAloneWhereThatIsAsked) {
  const std::string identities = (root_ / "train").string();
  EXPECT_TRUE(has_class_folders(identities));
  EXPECT_FALSE(has_class_folders(root_));
  EXPECT_FALSE(has_class_folders(root_ / "train/blue"));
  EXPECT_EQ(open_dataset(identities).test->size(), 3) << "else they are classes, and split";
  put("train/violet/only.png", as_png(gradient_image(9, 9, 3)));
  const Splits splits = open_dataset(identities, {.train_alone = true});
  EXPECT_EQ(splits.train->size(), 16);
  EXPECT_EQ(splits.test->size(), 16);  // at most a thousand of the same
  EXPECT_EQ(splits.train->target_names(),
            (std::vector<std::string>{"blue", "green", "red", "violet"}));
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0], {"the test is on 16 of the training pictures"}));
  fs::create_directory(root_ / "train/void");
  EXPECT_TRUE(says(message_of<DataError>([&] { open_dataset(identities, {.train_alone = true}); }),
                   {"there is no picture", "void"}));
}

class FolderOfPictures : public ImageFolder {
 protected:
  std::string advice() const {
    return message_of<DataError>(
        [&] { open_dataset(root_.string(), {.pictures = {.image_size = 8}}); });
  }
  void rename(const char* from, const char* to) const { fs::rename(root_ / from, root_ / to); }
};

TEST_F(FolderOfPictures, ThatHasNoneToTrainOnIsTold) {
  fs::remove_all(root_ / "train");
  EXPECT_TRUE(says(advice(), {"there is test, but no train", "put them into train/CLASS",
                              "/test to take that alone"}));
  rename("test", "val");
  EXPECT_TRUE(says(advice(), {"there is val, but no train", "put them into train/CLASS"}));
}

TEST_F(FolderOfPictures, AllInOneOrTooDeepIsTold) {
  const auto of = [](const fs::path& folder) {
    return message_of<DataError>([&] { open_dataset(folder.string()); });
  };
  EXPECT_TRUE(says(of(root_ / "train/blue"),
                   {"blue: there are pictures, but no folders; put those of each class into a "
                    "folder of its own"}));
  const fs::path outer = folder_ / "outer";
  fs::create_directories(outer / "inner/deepest");
  rename("train", "outer/inner/deepest/photos");
  EXPECT_TRUE(says(of(outer / "inner"), {"name the folder in it that holds train, or a folder for "
                                         "each class: deepest/photos"}));
}

TEST_F(FolderOfPictures, WhoseClassesLieAFolderTooDeepAreTold) {
  for (const char* name : {"blue", "green", "red"}) {
    fs::create_directories(folder_ / "deep" / name);
    fs::rename(root_ / "train" / name, folder_ / "deep" / name / "x");
  }
  EXPECT_TRUE(says(message_of<DataError>([&] { open_dataset((folder_ / "deep").string()); }),
                   {"deep: the pictures of blue, green and red lie a folder too deep; move those "
                    "of each class up into its folder"}));
}

TEST_F(FolderOfPictures, ThatIsNoneIsAskedForIdxFiles) {
  const testing::TemporaryDirectory empty;
  EXPECT_TRUE(says(message_of<DataError>([&] { open_dataset(empty.path().string()); }),
                   {"missing train-images-idx3-ubyte"}));
}

}  // namespace
}  // namespace ringlet::data
