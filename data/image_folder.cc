#include "data/image_folder.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/data_error.h"
#include "base/hash.h"
#include "data/fingerprint.h"
#include "data/folder_advice.h"
#include "data/images/image.h"
#include "data/in_parallel.h"
#include "data/picture_dataset.h"
#include "data/picture_list.h"
#include "data/picture_split.h"
#include "data/unseen_targets.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> labels_of(const std::vector<PictureFile>& files) {
  std::vector<std::int32_t> labels;
  for (const PictureFile& file : files) labels.push_back(file.label);
  return labels;
}

class PictureFolder final : public PictureDataset {
 public:
  PictureFolder(const fs::path& folder, PictureList list, const ImageFolderOptions& options,
                const std::string& part = "")
      : PictureDataset(folder.string() + part, std::move(list.classes), labels_of(list.files),
                       options),
        folder_(folder),
        files_(std::move(list.files)) {}

  void look_at_samples() const override {
    refuse_defects(name(), find_defects(size(), stop_requested(), [&](std::int64_t i) {
                     thread_local std::vector<std::uint8_t> bytes;
                     look_at_picture(path(i), bytes);
                   }));
  }
  const std::vector<PictureFile>& files() const { return files_; }

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
  RgbxView load(std::int64_t index, PictureReader& reader) const override {
    return reader.load(path(index), exif());
  }

 private:
  fs::path path(std::int64_t index) const {
    return folder_ / files_[static_cast<std::size_t>(index)].path;
  }

  /// Of the files' names, each with a number that stands for its bytes.
  std::uint64_t hash_files(std::uint64_t seed, const std::vector<std::uint64_t>& numbers) const {
    std::uint64_t hash = hash_of_options(seed);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto* text = reinterpret_cast<const std::uint8_t*>(files_[i].path.data());
      hash = hash_bytes({text, files_[i].path.size()}, hash ^ numbers[i]);
    }
    return hash;
  }

  fs::path folder_;
  std::vector<PictureFile> files_;
};

void leave_out_broken(const fs::path& folder, const StopRequest& stop, PictureList& list,
                      std::vector<std::string>& notes) {
  const std::vector<std::string> defects =
      find_defects(std::ssize(list.files), stop, [&](std::int64_t i) {
        PictureReader& reader = reader_of_this_thread();
        const LetGo let_go(reader);
        reader.load(folder / list.files[static_cast<std::size_t>(i)].path, false);
      });
  std::vector<PictureFile> good;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    if (defects[i].empty()) good.push_back(std::move(list.files[i]));
  }
  list.files = std::move(good);
  note_left_out(folder.string(), defects, notes);
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
  throw DataError(folder.string() + ": there is no picture (" + kImageEndings + ") of " + empty +
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
  const std::string stray = stray_pictures(folder, list);
  if (!stray.empty()) notes.push_back(stray);
  if (const std::string foreign = foreign_pictures(list); !foreign.empty()) {
    notes.push_back(passed_over_foreign(folder, foreign));
  }
  if (skip_broken) leave_out_broken(folder, stop, list, notes);
  return list;
}

std::vector<fs::path> paths_of(const fs::path& folder, const PictureList& list) {
  std::vector<fs::path> paths;
  for (const PictureFile& file : list.files) paths.push_back(folder / file.path);
  return paths;
}

/// Without those of which `is_out` says so.
template <class IsOut>
PictureList without(const PictureList& list, IsOut is_out) {
  PictureList rest;
  rest.classes = list.classes;
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    if (!is_out(i)) rest.files.push_back(list.files[i]);
  }
  return rest;
}

PictureList those(const PictureList& list, const std::vector<std::int64_t>& indices) {
  PictureList some;
  some.classes = list.classes;
  for (const std::int64_t i : indices)
    some.files.push_back(list.files[static_cast<std::size_t>(i)]);
  return some;
}

/// "0.2": a share as it is given.
std::string as_given(double share) {
  std::ostringstream text;
  text << share;
  return text.str();
}

ImageFolderOptions for_test(ImageFolderOptions options) {
  options.crop_from = 0;
  return options;
}

/// Both halves are of one folder.
void take_halves(const fs::path& folder, PictureList train, PictureList test,
                 const ImageFolderOptions& options, Splits& splits) {
  splits.train =
      std::make_shared<const PictureFolder>(folder, std::move(train), options, " (to train on)");
  splits.test = std::make_shared<const PictureFolder>(folder, std::move(test), for_test(options),
                                                      " (to test on)");
}

/// Who only tests, and with a model that was trained on other pictures, tests on all.
Splits load_to_test(const fs::path& folder, const ImageFolderOptions& options, Splits splits) {
  PictureList list = list_split(folder, options.skip_broken, options.stop_requested, splits.notes);
  require_pictures(folder, list, options.allow_unseen_targets);
  splits.notes.push_back(folder.string() +
                         ": there is neither val nor test, so the test is on all " +
                         std::to_string(list.files.size()) + " pictures");
  take_halves(folder, list, list, options, splits);
  return splits;
}

Splits load_to_split(const fs::path& folder, const ImageFolderOptions& options, Splits splits) {
  PictureList list = list_split(folder, false, options.stop_requested, splits.notes);
  require_pictures(folder, list, options.allow_unseen_targets);
  if (list.classes.size() == 1) {
    throw DataError(folder.string() + ": all pictures are in one folder, " + list.classes[0] +
                    ", and so of one class; put the pictures of each class into a folder of its "
                    "own");
  }
  std::vector<PicturePrint> prints = print_pictures(paths_of(folder, list), options.stop_requested);
  if (options.skip_broken) {
    std::vector<std::string> defects;
    for (const PicturePrint& print : prints) defects.push_back(print.defect);
    list = without(list, [&](std::size_t i) { return !defects[i].empty(); });
    std::erase_if(prints, [](const PicturePrint& print) { return !print.defect.empty(); });
    note_left_out(folder.string(), defects, splits.notes);
    require_pictures(folder, list, options.allow_unseen_targets);
  }
  const double share = options.split > 0 ? options.split : kUsualSplit;
  const PictureSplit split = split_pictures(folder.string(), list.classes, labels_of(list.files),
                                            prints, share, options.allow_unseen_targets);
  splits.notes.push_back(
      folder.string() + ": there is neither val nor test, so " + std::to_string(split.test.size()) +
      " of " + std::to_string(list.files.size()) + " pictures are tested on, and not trained on " +
      "(--split " + as_given(share) + ")" +
      (split.kept_together == 0 ? ""
                                : "; " + std::to_string(split.kept_together) +
                                      " that are like another one lie on its side"));
  take_halves(folder, those(list, split.train), those(list, split.test), options, splits);
  return splits;
}

Splits load_parts(const PictureParts& parts, const ImageFolderOptions& options, Splits splits) {
  PictureList to_train = list_split(parts.train, options.skip_broken && !options.only_test,
                                    options.stop_requested, splits.notes);
  require_pictures(parts.train, to_train, options.allow_unseen_targets);
  PictureList to_test =
      list_split(parts.test, options.skip_broken, options.stop_requested, splits.notes);
  renumber(parts.test, to_train.classes, to_test);
  require_pictures(parts.test, to_test, options.allow_unseen_targets);
  splits.train = std::make_shared<const PictureFolder>(parts.train, std::move(to_train), options);
  splits.test =
      std::make_shared<const PictureFolder>(parts.test, std::move(to_test), for_test(options));
  return splits;
}

}  // namespace

bool splits_pictures(const fs::path& directory) {
  const PictureParts parts = find_parts(directory);
  return !parts.train.empty() && parts.test.empty();
}

Splits load_image_folder(const fs::path& directory, const ImageFolderOptions& options) {
  const PictureParts parts = find_parts(directory);
  if (parts.train.empty()) throw DataError(folder_advice(directory));
  Splits splits{.train = nullptr, .test = nullptr, .notes = parts.notes};
  if (parts.test.empty()) {
    const bool all = options.only_test && options.split == 0;
    return all ? load_to_test(parts.train, options, std::move(splits))
               : load_to_split(parts.train, options, std::move(splits));
  }
  if (options.split > 0) {
    throw DataError(directory.string() +
                    ": --split is for a folder without pictures to test on, "
                    "and there is " +
                    parts.test.filename().string() + "; leave it out");
  }
  return load_parts(parts, options, std::move(splits));
}

std::vector<std::string> picture_names(const Dataset& set) {
  const auto* folder = dynamic_cast<const PictureFolder*>(&set);
  std::vector<std::string> names;
  if (folder == nullptr) return names;
  for (const PictureFile& file : folder->files()) names.push_back(file.path);
  return names;
}

Splits load_identity_folder(const fs::path& directory, const ImageFolderOptions& options) {
  Splits splits;
  PictureList list =
      list_split(directory, options.skip_broken, options.stop_requested, splits.notes);
  require_pictures(directory, list, options.allow_unseen_targets);
  PictureList some;
  some.classes = list.classes;
  for (const std::int64_t i : test_sample(std::ssize(list.files))) {
    some.files.push_back(list.files[static_cast<std::size_t>(i)]);
  }
  splits.notes.push_back(note_on_test_sample(directory.string(), std::ssize(some.files),
                                             "train and val, but folders of identities"));
  splits.train = std::make_shared<const PictureFolder>(directory, std::move(list), options);
  splits.test =
      std::make_shared<const PictureFolder>(directory, std::move(some), for_test(options));
  return splits;
}

}  // namespace ringlet::data
