#include "data/image_folder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/data_error.h"
#include "base/hash.h"
#include "data/fingerprint.h"
#include "data/folder_advice.h"
#include "data/images/centre_crop.h"
#include "data/images/picture_reader.h"
#include "data/in_parallel.h"
#include "data/picture_list.h"
#include "data/unseen_targets.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMeasured = 4096;  // pictures that statistics are taken of, at most

/// What a thread reads pictures with.
struct PictureTools {
  PictureReader reader;
  Resampler resampler;
  std::vector<std::uint8_t> kept;  // what a sample is cut from
};

PictureTools& tools_of_this_thread() {
  thread_local PictureTools tools;
  return tools;
}

/// Of those that go through a whole folder before a run.
int reading_threads() {
  constexpr unsigned kMost = 16;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

std::vector<std::int32_t> labels_of(const std::vector<PictureFile>& files) {
  std::vector<std::int32_t> labels;
  for (const PictureFile& file : files) labels.push_back(file.label);
  return labels;
}

/// What is kept of a picture: its width and height, then [3, height, width].
constexpr std::size_t kKeptHead = 2 * sizeof(std::uint32_t);

Planes kept_picture(std::span<const std::uint8_t> kept) {
  std::uint32_t sides[2] = {};
  if (kept.size() >= kKeptHead) std::memcpy(sides, kept.data(), kKeptHead);
  if (sides[0] == 0 || sides[1] == 0 || kept.size() != kKeptHead + 3ULL * sides[0] * sides[1]) {
    throw DataError("a picture in the cache is damaged; remove the cache's files");
  }
  return {kept.data() + kKeptHead, 3, static_cast<int>(sides[1]), static_cast<int>(sides[0])};
}

/// What is wrong with each file, as far as `look`, which throws DataError, finds it; empty where
/// nothing is.
template <class Look>
std::vector<std::string> find_defects(const fs::path& folder, const std::vector<PictureFile>& files,
                                      const StopRequest& stop, const Look& look) {
  std::vector<std::string> defects(files.size());
  in_parallel(
      std::ssize(files), reading_threads(),
      [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        try {
          look(folder / files[at].path);
        } catch (const DataError& error) {
          defects[at] = error.what();
        }
      },
      stop);
  return defects;
}

class PictureFolder final : public Dataset {
 public:
  PictureFolder(const fs::path& folder, PictureList list, const ImageFolderOptions& options)
      : Dataset({.name = folder.string(),
                 .channels = 3,
                 .height = options.image_size,
                 .width = options.image_size,
                 .target_names = std::move(list.classes),
                 .photographs = true,
                 .stop_requested = options.stop_requested},
                labels_of(list.files)),
        folder_(folder),
        files_(std::move(list.files)),
        size_(options.image_size),
        crop_from_(options.crop_from),
        exif_(options.exif) {}

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    PictureTools& tools = tools_of_this_thread();
    const LetGo let_go(tools.reader);
    centre_crop(load(index, tools), size_, tools.resampler, {out.data()});
  }

  void read_varied(std::int64_t index, const Variation& variation,
                   std::span<std::uint8_t> out) const override {
    if (variation.kind != Augment::random_resized_crop) {
      return Dataset::read_varied(index, variation, out);
    }
    PictureTools& tools = tools_of_this_thread();
    if (crop_from_ > 0) {
      keep(index, tools.kept);
      return vary_kept(tools.kept, variation, out);
    }
    const LetGo let_go(tools.reader);
    const RgbxView picture = load(index, tools);
    Random random(variation.key);
    const Cut cut = draw_random_resized_crop(picture.width, picture.height, random);
    tools.resampler.resize(picture.cropped(cut.box), size_, size_, {0, 0, size_, size_},
                           {out.data(), 3, cut.mirrored});
  }

  bool keeps_samples() const override { return crop_from_ == 0; }

  void keep(std::int64_t index, std::vector<std::uint8_t>& kept) const override {
    if (keeps_samples()) return Dataset::keep(index, kept);
    PictureTools& tools = tools_of_this_thread();
    const LetGo let_go(tools.reader);
    const RgbxView picture = load(index, tools);
    const std::int64_t shorter = std::min(picture.width, picture.height);
    const auto side = [&](std::int64_t whole) {
      return static_cast<int>(shorter > crop_from_ ? crop_from_ * whole / shorter : whole);
    };
    const int width = side(picture.width), height = side(picture.height);
    const std::uint32_t sides[] = {static_cast<std::uint32_t>(width),
                                   static_cast<std::uint32_t>(height)};
    kept.resize(kKeptHead + 3 * std::size_t(width) * std::size_t(height));
    std::memcpy(kept.data(), sides, kKeptHead);
    const ResampleTarget target{kept.data() + kKeptHead};
    if (shorter <= crop_from_) return write_planes(picture, target);
    tools.resampler.resize(picture, width, height, {0, 0, width, height}, target);
  }

  void vary_kept(std::span<const std::uint8_t> kept, const Variation& variation,
                 std::span<std::uint8_t> out) const override {
    if (keeps_samples()) return Dataset::vary_kept(kept, variation, out);
    const Planes picture = kept_picture(kept);
    Random random(variation.key);
    resize_cut(picture, draw_random_resized_crop(picture.width, picture.height, random), size_,
               size_, out);
  }

  void look_at_samples() const override {
    const std::vector<std::string> defects =
        find_defects(folder_, files_, stop_requested(), [](const fs::path& file) {
          thread_local std::vector<std::uint8_t> bytes;
          look_at_picture(file, bytes);
        });
    const auto is_good = [](const std::string& defect) { return defect.empty(); };
    const auto first = std::find_if_not(defects.begin(), defects.end(), is_good);
    if (first == defects.end()) return;
    throw DataError(*first + "; " +
                    std::to_string(std::ranges::count_if(defects, std::not_fn(is_good))) + " of " +
                    std::to_string(defects.size()) + " pictures in " + name() +
                    " cannot be read, and --skip-broken leaves them out");
  }

 protected:
  PixelContent survey(std::uint64_t seed) const override {
    std::vector<std::uint64_t> prints(files_.size());
    in_parallel(
        std::ssize(files_), reading_threads(),
        [&](std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          prints[at] = fingerprint_of(folder_ / files_[at].path);
        },
        stop_requested());
    return {hash_files(seed, prints), {}};
  }
  std::optional<std::uint64_t> former_survey(std::uint64_t seed) const override {
    std::vector<std::uint64_t> sizes;
    for (const PictureFile& file : files_) sizes.push_back(file.bytes);
    return hash_files(seed, sizes);
  }
  std::vector<PixelStatistics> measure() const override {
    return measure_every((size() + kMeasured - 1) / kMeasured);
  }

 private:
  /// Of the files' names, each with a number that stands for its bytes.
  std::uint64_t hash_files(std::uint64_t seed, const std::vector<std::uint64_t>& numbers) const {
    std::uint64_t hash = seed ^ (exif_ ? 1 : 0) ^ (static_cast<std::uint64_t>(crop_from_) << 1);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto* text = reinterpret_cast<const std::uint8_t*>(files_[i].path.data());
      hash = hash_bytes({text, files_[i].path.size()}, hash ^ numbers[i]);
    }
    return hash;
  }

  RgbxView load(std::int64_t index, PictureTools& tools) const {
    return tools.reader.load(folder_ / files_[static_cast<std::size_t>(index)].path, exif_);
  }

  fs::path folder_;
  std::vector<PictureFile> files_;
  int size_, crop_from_;
  bool exif_;
};

void leave_out_broken(const fs::path& folder, const StopRequest& stop, PictureList& list,
                      std::vector<std::string>& notes) {
  constexpr std::int64_t kNamed = 10;
  const std::vector<std::string> defects =
      find_defects(folder, list.files, stop, [](const fs::path& file) {
        PictureReader& reader = tools_of_this_thread().reader;
        const LetGo let_go(reader);
        reader.load(file, false);
      });
  std::vector<PictureFile> good;
  std::int64_t broken = 0;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    if (defects[i].empty()) {
      good.push_back(std::move(list.files[i]));
    } else if (++broken <= kNamed) {
      notes.push_back("left out " + defects[i]);
    }
  }
  list.files = std::move(good);
  if (broken == 0) return;
  notes.push_back(folder.string() + ": left out " + std::to_string(broken) + " of " +
                  std::to_string(defects.size()) + " pictures, which cannot be read");
}

void require_pictures(const fs::path& folder, const PictureList& list, bool allow_unseen_targets) {
  if (list.classes.empty()) {
    throw DataError(folder.string() +
                    ": there is no class; put the pictures of each class into a folder of its own");
  }
  const std::string empty = unseen_targets(labels_of(list.files), list.classes);
  if (empty.empty() || (allow_unseen_targets && !list.files.empty())) return;
  for (std::size_t label = 0; label < list.classes.size(); ++label) {
    const bool has_some = std::any_of(
        list.files.begin(), list.files.end(),
        [&](const PictureFile& file) { return file.label == static_cast<std::int32_t>(label); });
    const std::string foreign = foreign_pictures(list, list.classes[label]);
    if (has_some || foreign.empty()) continue;
    throw DataError(folder.string() + ": there is no picture of " + list.classes[label] +
                    " that is read by its ending, but " + foreign + "; " + kForeignRemedy);
  }
  throw DataError(folder.string() +
                  ": there is no picture (.png, .jpg, .jpeg, .bmp, .pgm, .ppm) of " + empty +
                  "; add some or remove the folder, or allow it with --allow-empty-classes");
}

/// Numbers the classes of `list` as `classes` has them.
void renumber(const fs::path& folder, const std::vector<std::string>& classes, PictureList& list) {
  std::vector<std::int32_t> numbers;
  for (const std::string& name : list.classes) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw DataError(folder.string() + ": the class " + name +
                      " is not among the training images; remove the folder, or correct its name");
    }
    numbers.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  for (PictureFile& file : list.files) file.label = numbers[static_cast<std::size_t>(file.label)];
  list.classes = classes;
}

PictureList list_split(const fs::path& folder, bool skip_broken, const StopRequest& stop,
                       std::vector<std::string>& notes) {
  PictureList list = list_pictures(folder);
  const std::string passed = passed_over(folder, list);
  if (!passed.empty()) notes.push_back(passed);
  if (const std::string foreign = foreign_pictures(list); !foreign.empty()) {
    notes.push_back(folder.string() +
                    ": passed over pictures that are not read by their endings: " + foreign + "; " +
                    kForeignRemedy);
  }
  if (skip_broken) leave_out_broken(folder, stop, list, notes);
  return list;
}

/// The folder that the model is tested on.
fs::path test_folder(const fs::path& directory, std::vector<std::string>& notes) {
  std::error_code error;
  const bool val = fs::is_directory(directory / "val", error);
  const bool test = fs::is_directory(directory / "test", error);
  if (!val && !test) {
    const std::string advice = folder_advice(directory);
    if (!advice.empty()) throw DataError(advice);
    throw DataError(directory.string() +
                    ": there is train, but neither val nor test; put some pictures of each class "
                    "into val/CLASS to test on");
  }
  if (val && test) notes.push_back(directory.string() + ": tests on val; test is not looked at");
  return directory / (val ? "val" : "test");
}

}  // namespace

bool has_image_folders(const fs::path& directory) {
  std::error_code error;
  return fs::is_directory(directory / "train", error);
}

Splits load_image_folder(const fs::path& directory, const ImageFolderOptions& options) {
  Splits splits;
  const fs::path train = directory / "train", test = test_folder(directory, splits.notes);
  PictureList to_train = list_split(train, options.skip_broken && !options.only_test,
                                    options.stop_requested, splits.notes);
  require_pictures(train, to_train, options.allow_unseen_targets);
  PictureList to_test = list_split(test, options.skip_broken, options.stop_requested, splits.notes);
  renumber(test, to_train.classes, to_test);
  require_pictures(test, to_test, options.allow_unseen_targets);
  splits.train = std::make_shared<const PictureFolder>(train, std::move(to_train), options);
  ImageFolderOptions of_test = options;
  of_test.crop_from = 0;
  splits.test = std::make_shared<const PictureFolder>(test, std::move(to_test), of_test);
  return splits;
}

}  // namespace ringlet::data
