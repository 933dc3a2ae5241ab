// Training on photographs in a folder: the same bytes for any number of workers and replicas and
// for a run that was resumed, what the model's file says, and a broken file in the middle.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/data_error.h"
#include "base/files/atomic_file.h"
#include "data/image_folder.h"
#include "data/images/centre_crop.h"
#include "tests/support/files.h"
#include "tests/support/picture_folder.h"
#include "tests/train/runs.h"
#include "train/files/model_info.h"
#include "train/files/pixel_cache.h"
#include "train/files/recipe_json.h"
#include "train/loop/plan_entries.h"

namespace ringlet::train {
namespace {

using data::load_image_folder;
using testing::message_of;
using testing::read_file;
using testing::says;
using testing::TemporaryDirectory;
using testing::write_file;
using testing::write_picture_folder;

constexpr int kSide = 12;

class Photographs : public ::testing::Test {
 protected:
  Photographs() { write_picture_folder(pictures()); }

  std::filesystem::path pictures() const { return folder_ / "pictures"; }
  data::Splits load() const { return load_image_folder(pictures(), {.image_size = kSide}); }

  static TrainOptions options(int replicas, int workers, const std::string& augment) {
    TrainOptions options = exact_options(replicas);
    options.recipe.model = "mlp";
    options.recipe.batch_size = 8;
    options.recipe.epochs = 2;
    options.recipe.augment = augment;
    options.recipe.normalize = true;
    options.recipe.image_size = kSide;
    options.execution.workers = workers;
    return options;
  }

  /// The bytes of the model that a run leaves; with `stop` it stops after so many steps and goes
  /// on.
  std::string model(const TrainOptions& made, const data::Splits& data, int stop = 0) const {
    const TemporaryDirectory out;
    TrainOptions wanted = made;
    wanted.files.out = out.path();
    const int ranks = static_cast<int>(wanted.execution.devices.size());
    std::optional<SavedState> saved;
    if (stop > 0) {
      wanted.max_steps = stop;
      run(make_run_setup(wanted, data, ranks));
      wanted.max_steps = -1;
      saved = read_state(out.path());
      wanted.recipe = saved->recipe;
    }
    run(make_run_setup(wanted, data, ranks, saved));
    return read_file(out / "model.safetensors");
  }

  TemporaryDirectory folder_;
};

TEST_F(Photographs, NoNumberOfWorkersOrReplicasChangesABit) {
  for (const char* augment : {"crop-flip", "random-resized-crop"}) {
    const std::string one = model(options(1, 0, augment), load());
    ASSERT_GT(one.size(), 10'000U);
    for (const int replicas : {1, 2, 4}) {
      for (const int workers : {0, 1, 4}) {
        EXPECT_TRUE(model(options(replicas, workers, augment), load()) == one)
            << replicas << " replicas, " << workers << " workers, " << augment;
      }
    }
    EXPECT_TRUE(model(options(2, 4, augment), load(), 3) == one) << "resumed, " << augment;
    EXPECT_FALSE(model(options(1, 1, "none"), load()) == one);
  }
}

TEST_F(Photographs, AreNotVariedForEvaluation) {
  const auto loss = [&](const char* augment) {
    TrainOptions made = options(1, 1, augment);
    made.recipe.lr = 0;  // nothing is learnt
    return run(made, load()).result.test.loss;
  };
  EXPECT_EQ(loss("random-resized-crop"), loss("none"));
}

TEST_F(Photographs, HaveASizeToCutFromOnlyWhereTheyAreCut) {
  TrainOptions made = options(1, 1, "crop-flip");
  made.recipe.crop_from = 18;
  EXPECT_TRUE(says(message_of<ContractError>([&] { make_run_setup(made, load(), 1); }),
                   {"--crop-from", "random-resized-crop"}));
}

TEST_F(Photographs, AModelsFileSaysThatItSeesThem) {
  TrainOptions made = options(1, 1, "none");
  made.recipe.normalize_by = "imagenet";
  made.recipe.exif = false;
  const RunSetup setup = make_run_setup(made, load(), 1);
  EXPECT_TRUE(setup.model.photographs);
  EXPECT_FALSE(setup.model.exif);
  EXPECT_FALSE(setup.model.background.has_value());
  EXPECT_FLOAT_EQ(setup.model.mean[2], 0.406F);
  EXPECT_FLOAT_EQ(setup.model.deviation[0], 0.229F);
  EXPECT_EQ(setup.model, parse_model_info("it", to_metadata(setup.model)));
  Metadata other = to_metadata(setup.model);
  other["ringlet.photographs"] = "sideways";
  EXPECT_TRUE(says(message_of<FileError>([&] { parse_model_info("it", other); }),
                   {"ringlet.photographs", "sideways"}));
}

TEST_F(Photographs, AnotherSourceOfMeansNeedsColours) {
  TrainOptions made = options(1, 1, "none");
  made.recipe.normalize_by = "cifar-10";
  EXPECT_FLOAT_EQ(make_run_setup(made, load(), 1).loader.deviation[1], 0.2435F);
  EXPECT_TRUE(says(message_of<ContractError>([&] { make_run_setup(made, formula_splits(20), 1); }),
                   {"--normalize cifar-10", "3 channels"}));
}

TEST_F(Photographs, SymmetricIsFromMinusOneToOneForAnyChannels) {
  TrainOptions made = options(1, 1, "none");
  made.recipe.normalize_by = "symmetric";
  for (const data::Splits& splits : {load(), formula_splits(20)}) {
    const data::LoaderOptions loader = make_run_setup(made, splits, 1).loader;
    EXPECT_TRUE(loader.mean == 0.5F);
    EXPECT_TRUE(loader.deviation == 0.5F);
  }
}

TEST_F(Photographs, ABrokenFileEndsTheRunAndIsNamed) {
  write_file(pictures() / "train/green/2.png", "\x89PNG\r\n\x1a\n, and no more");
  const data::Splits data = load();
  for (const int workers : {0, 1, 4}) {
    TrainOptions made = options(2, workers, "flip");
    made.recipe.normalize_by = "imagenet";  // "data" would find it before
    const std::string message = message_of<std::exception>([&] { run(made, data); });
    EXPECT_NE(message.find("train/green/2.png"), std::string::npos) << message;
  }
}

TEST_F(Photographs, GoOnOnlyWithTheSameBytesOfData) {
  const TrainOptions made = options(1, 1, "none");
  SavedState saved;
  saved.recipe = made.recipe;
  const auto resume = [&](std::uint64_t hash) {
    saved.data_hash = hash;
    make_run_setup(made, load(), 1, saved);
  };
  const std::filesystem::path picture = pictures() / "train/red/1.png";
  const std::string bytes = read_file(picture);
  write_file(picture, bytes + "a");  // behind the picture's end
  const std::uint64_t now = load().train->hash(), former = load().train->former_hash();
  resume(now);
  resume(former);  // of an earlier version
  write_file(picture, bytes + "b");
  EXPECT_TRUE(says(message_of<FileError>([&] { resume(now); }), {"was trained on other data"}));
}

TEST_F(Photographs, ProcessesCompareWhatIsInTheDataAndNotWhereItLies) {
  const auto plan = [&](const std::filesystem::path& folder) {
    TrainOptions made = options(1, 1, "none");
    made.recipe.data = folder.string();
    made.recipe.normalize_by = "imagenet";
    const RunSetup setup =
        make_run_setup(made, load_image_folder(folder, {.image_size = kSide}), 1);
    return plan_entries(setup, {}, {}, "ring");
  };
  const std::filesystem::path copy = folder_ / "copy";
  std::filesystem::copy(pictures(), copy, std::filesystem::copy_options::recursive);
  const auto here = plan(pictures());
  EXPECT_EQ(plan(copy), here);
  for (const char* name : {"train/red/1.png", "test/red/1.png"}) {
    const std::string whole = read_file(copy / name);
    write_file(copy / name, std::string(whole.size(), 'x'));
    EXPECT_NE(plan(copy), here) << name;
    write_file(copy / name, whole);
  }
}

TEST_F(Photographs, StatesOfFormerVersionsHaveNoneOfThisAndAreRead) {
  const nlohmann::json json = to_json(Recipe{});
  for (const char* field : {"normalize_by", "augment", "image_size", "exif", "crop_from"}) {
    EXPECT_FALSE(json.contains(field)) << field;
  }
  EXPECT_EQ(recipe_from_json(json, "it"), Recipe{});
  for (const auto& [field, value] : std::map<std::string, nlohmann::json>{{"augment", "mixup"},
                                                                          {"normalize_by", "x"},
                                                                          {"image_size", -1},
                                                                          {"exif", 1},
                                                                          {"crop_from", -1}}) {
    nlohmann::json wrong = to_json(Recipe{});
    wrong[field] = value;
    EXPECT_TRUE(says(message_of<FileError>([&] { recipe_from_json(wrong, "it"); }), {"it:"}))
        << field;
  }
}

class PixelCache : public Photographs {
 protected:
  std::string cache() const { return (folder_ / "pixels").string(); }
  data::Splits cached(const std::string& name) const { return with_cache(load(), name, 3); }
  data::Splits data_whose_hash_is_known(int crop_from) const {
    data::Splits splits =
        load_image_folder(pictures(), {.image_size = kSide, .crop_from = crop_from});
    (void)splits.train->hash();
    (void)splits.test->hash();
    return splits;
  }
  void spoil_pictures() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(pictures())) {
      if (entry.is_regular_file()) write_file(entry.path(), "x");
    }
  }
};

TEST_F(PixelCache, GivesTheSameSamplesFromMemoryAndFile) {
  const data::Splits plain = load();
  for (const std::string& name : {std::string("memory"), cache(), cache()}) {
    const data::Splits splits = cached(name);
    EXPECT_TRUE(splits.notes.empty());
    for (const auto& [ours, theirs] :
         {std::pair{splits.train, plain.train}, {splits.test, plain.test}}) {
      EXPECT_FALSE(ours->images().empty());
      EXPECT_EQ(ours->hash(), theirs->hash());
      EXPECT_EQ(ours->mean(), theirs->mean());
      EXPECT_TRUE(ours->photographs());
      for (std::int64_t i = 0; i < ours->size(); ++i) {
        ASSERT_EQ(ours->image(i), theirs->image(i));
        ASSERT_EQ(ours->targets()[static_cast<std::size_t>(i)],
                  theirs->targets()[static_cast<std::size_t>(i)]);
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists("memory.train"));
}

TEST_F(PixelCache, HoldsTheLargerPicturesThatRandomPartsAreCutFrom) {
  const data::Splits plain = load_image_folder(pictures(), {.image_size = kSide, .crop_from = 18});
  for (const std::string& name : {std::string("memory"), cache(), cache()}) {
    const data::Splits splits = with_cache(plain, name, 3);
    EXPECT_TRUE(splits.notes.empty());
    EXPECT_TRUE(splits.train->images().empty());
    EXPECT_FALSE(splits.test->images().empty());
    EXPECT_EQ(splits.train->hash(), plain.train->hash());
    std::vector<std::uint8_t> ours(3 * kSide * kSide), theirs(ours);
    for (const data::Augment kind :
         {data::Augment::none, data::Augment::crop_flip, data::Augment::random_resized_crop}) {
      for (std::int64_t i = 0; i < plain.train->size(); ++i) {
        const data::Variation variation = data::variation_of({kind, 5}, 1, i);
        splits.train->read_varied(i, variation, ours);
        plain.train->read_varied(i, variation, theirs);
        ASSERT_EQ(ours, theirs) << data::name_of(kind) << ", " << i;
      }
    }
  }
  const std::string file = cache() + ".train", whole = read_file(file);
  std::string endless = whole, moved = whole;
  endless[16 + 32 + 7] = '\x7f';           // of the first sample's bytes
  ++moved[16 + 32], --moved[16 + 32 + 8];  // the sum is what it was
  for (const auto& [bytes, words] : {std::pair{whole.substr(0, 60), "is cut short"},
                                     {whole.substr(0, whole.size() - 1), "is cut short"},
                                     {endless, "is cut short"},
                                     {moved, "is damaged"}}) {
    write_file(file, bytes);
    const data::Splits splits = with_cache(plain, cache(), 3);
    ASSERT_EQ(splits.notes.size(), 1U) << words;
    EXPECT_TRUE(says(splits.notes[0], {file, words, "made again"}));
    EXPECT_TRUE(read_file(file) == whole);
  }
}

TEST_F(PixelCache, IsReadInPlaceOfPicturesThatAreCutAtRandom) {
  const auto cut = [&] {
    return with_cache(load_image_folder(pictures(), {.image_size = kSide, .crop_from = 18}),
                      cache(), 2);
  };
  TrainOptions made = options(1, 1, "random-resized-crop");
  made.recipe.normalize_by = "imagenet";
  const std::string expected = model(made, cut());
  const data::Splits again = data_whose_hash_is_known(18);
  spoil_pictures();
  EXPECT_TRUE(model(made, with_cache(again, cache(), 2)) == expected);
}

TEST_F(PixelCache, IsReadInPlaceOfThePictures) {
  cached(cache());
  const data::Splits again = data_whose_hash_is_known(0);
  spoil_pictures();
  EXPECT_EQ(with_cache(again, cache(), 3).train->image(3).size(), 3U * kSide * kSide);
}

TEST_F(PixelCache, OfPicturesThatWereReplacedIsMadeAgain) {
  const std::vector<std::uint8_t> before = cached(cache()).train->image(0);
  data::Image image = testing::gradient_image(20, 20, 3);
  write_file(pictures() / "train/blue/0.ppm", testing::as_pnm(image));
  EXPECT_EQ(cached(cache()).notes.size(), 1U);  // another name
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
  write_file(pictures() / "train/blue/0.ppm", testing::as_pnm(image));  // the same name and size
  const data::Splits splits = cached(cache());
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0], {cache() + ".train", "is of other data", "made again"}));
  for (std::int64_t i = 0; i < splits.train->size(); ++i) {
    EXPECT_EQ(splits.train->image(i), load().train->image(i)) << i;
  }
  EXPECT_TRUE(cached(cache()).notes.empty());
}

TEST_F(PixelCache, OfAFolderThatHasMovedIsTaken) {
  cached(cache());
  std::filesystem::rename(pictures(), folder_ / "elsewhere");
  const data::Splits moved =
      with_cache(load_image_folder(folder_ / "elsewhere", {.image_size = kSide}), cache(), 2);
  EXPECT_TRUE(moved.notes.empty());
}

TEST_F(PixelCache, ThatIsCutShortOrDamagedIsToldAndMadeAgain) {
  cached(cache());
  const std::string file = cache() + ".train", whole = read_file(file);
  std::string flipped = whole;
  flipped[flipped.size() - 5] ^= 1;
  std::string foreign = whole;
  foreign[20] ^= 1;
  for (const auto& [bytes, words] : {std::pair{whole.substr(0, whole.size() - 1), "is cut short"},
                                     {whole.substr(0, 30), "is cut short"},
                                     {whole.substr(0, 3), "is cut short"},
                                     {std::string(), "is cut short"},
                                     {flipped, "is damaged"},
                                     {foreign, "is of other data"}}) {
    write_file(file, bytes);
    const data::Splits splits = cached(cache());
    ASSERT_EQ(splits.notes.size(), 1U) << words;
    EXPECT_TRUE(says(splits.notes[0], {file, words, "made again"}));
    EXPECT_EQ(splits.train->image(2), load().train->image(2));
    EXPECT_TRUE(read_file(file) == whole);
  }
}

TEST_F(PixelCache, BehindALinkIsMadeAgainThere) {
  namespace fs = std::filesystem;
  cached(cache());
  const std::string file = cache() + ".train", whole = read_file(file), there = folder_ / "there";
  fs::rename(file, there);
  fs::create_symlink(there, file);
  write_file(there, whole.substr(0, 99));
  EXPECT_EQ(cached(cache()).notes.size(), 1U);
  EXPECT_TRUE(fs::is_symlink(file));
  EXPECT_TRUE(read_file(there) == whole);
}

TEST_F(PixelCache, OfAnotherImageSizeIsMadeAgain) {
  with_cache(load_image_folder(pictures(), {.image_size = kSide + 1}), cache(), 1);
  const data::Splits splits = cached(cache());
  ASSERT_EQ(splits.notes.size(), 2U);
  EXPECT_TRUE(says(splits.notes[1], {".test", "another image size"}) ||
              says(splits.notes[1], {".test", "other data"}));
}

/// Its pixels are not those that are decoded today.
TEST_F(PixelCache, OfAnEarlierVersionIsToldAndMadeAgain) {
  cached(cache());
  const std::string file = cache() + ".train", whole = read_file(file);
  std::string former = whole;
  former[former.find("pixels 2") + 7] = '1';
  write_file(file, former);
  const data::Splits splits = cached(cache());
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0], {file, "is an earlier version's", "it is made again"}));
  EXPECT_EQ(read_file(file), whole);
}

TEST_F(PixelCache, LeavesAloneWhatIsNone) {
  write_file(cache() + ".train", "my diary");
  EXPECT_TRUE(says(message_of<FileError>([&] { cached(cache()); }), {"is no cache of pixels"}));
  EXPECT_EQ(read_file(cache() + ".train"), "my diary");
}

TEST_F(PixelCache, WaitsForNoPipeAndReadsNoDevice) {
  namespace fs = std::filesystem;
  for (const char* half : {".train", ".test"}) {
    const fs::path file = cache() + half;
    const std::function<void()> makers[] = {[&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); },
                                            [&] { fs::create_directory(file); },
                                            [&] { fs::create_symlink("/dev/zero", file); },
                                            [&] { fs::create_symlink(file.filename(), file); }};
    for (const auto& make : makers) {
      make();
      EXPECT_TRUE(says(message_of<FileError>([&] { cached(cache()); }), {file.string()}));
      const bool made = fs::exists(fs::symlink_status(cache() + ".train"));
      EXPECT_EQ(made, half == std::string(".train"))
          << "decoded before the other half was looked at";
      fs::remove(file);
    }
  }
}

TEST_F(PixelCache, NamesAPictureThatIsBroken) {
  write_file(pictures() / "train/green/2.png", "no picture");
  write_file(pictures() / "train/red/1.png", "no picture");
  EXPECT_TRUE(says(message_of<DataError>([&] { cached(cache()); }), {"green/2.png"}));
  EXPECT_FALSE(std::filesystem::exists(cache() + ".train"));
}

}  // namespace
}  // namespace ringlet::train
