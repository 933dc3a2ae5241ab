#include "data/idx_dataset.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>

#include "base/data_error.h"
#include "data/memory_dataset.h"
#include "data/unseen_targets.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUsualClasses = 10;

/// The names under which a file may lie: "train-images-idx3-ubyte", with '.' for the '-' before
/// idx, each also with ".gz".
std::vector<std::string> spellings(const std::string& name) {
  std::string dotted = name;
  dotted[dotted.rfind("-idx")] = '.';
  return {name, name + ".gz", dotted, dotted + ".gz"};
}

std::optional<fs::path> find_file(const fs::path& directory, const std::string& name) {
  std::error_code error;
  for (const std::string& spelling : spellings(name)) {
    if (fs::exists(directory / spelling, error)) return directory / spelling;
  }
  return std::nullopt;
}

/// How the files of a set are called.
struct Naming {
  std::string before;         // "emnist-letters-"
  std::string test = "t10k";  // instead of "train"

  /// Images and labels to train on, then those to test on.
  std::array<std::string, 4> all() const {
    return {before + "train-images-idx3-ubyte", before + "train-labels-idx1-ubyte",
            before + test + "-images-idx3-ubyte", before + test + "-labels-idx1-ubyte"};
  }
};

std::vector<Naming> namings() {
  std::vector<Naming> all{{}};
  for (const char* set : {"balanced", "byclass", "bymerge", "digits", "letters", "mnist"}) {
    all.push_back({std::string("emnist-") + set + "-", "test"});
  }
  return all;
}

struct FoundSet {
  std::string name;  // for messages
  IdxFiles files;
};

/// The sets whose four files are in `directory`.
std::vector<FoundSet> sets_in(const fs::path& directory) {
  std::vector<FoundSet> found;
  for (const Naming& naming : namings()) {
    std::vector<fs::path> files;
    for (const std::string& name : naming.all()) {
      if (const auto file = find_file(directory, name)) files.push_back(*file);
    }
    if (files.size() < naming.all().size()) continue;
    found.push_back({directory.string() + (naming.before.empty() ? "" : "/" + naming.before + "*"),
                     {{files[0], files[1]}, {files[2], files[3]}}});
  }
  return found;
}

/// The same, or where there are none, those in the folders that torchvision makes below it.
std::vector<FoundSet> sets_below(const fs::path& directory) {
  std::vector<FoundSet> found = sets_in(directory);
  if (!found.empty()) return found;
  for (const char* folder :
       {"raw", "MNIST/raw", "FashionMNIST/raw", "KMNIST/raw", "QMNIST/raw", "EMNIST/raw"}) {
    for (FoundSet& set : sets_in(directory / folder)) found.push_back(std::move(set));
  }
  return found;
}

struct RawSplit {
  IdxArray images;
  IdxArray labels;
};

RawSplit read_split(const IdxPair& files, const IdxRead& read) {
  RawSplit raw{read(files.images, 3), read(files.labels, 1)};
  if (raw.images.sizes[0] != raw.labels.sizes[0]) {
    throw DataError(files.labels.string() + ": expected " + std::to_string(raw.images.sizes[0]) +
                    " labels, one for each image of " + files.images.string() + ", found " +
                    std::to_string(raw.labels.sizes[0]) + "; are both of one data set?");
  }
  return raw;
}

void require_same_image_size(const IdxFiles& files, const RawSplit& train, const RawSplit& test) {
  const auto size = [](const IdxArray& images) {
    return std::to_string(images.sizes[1]) + " x " + std::to_string(images.sizes[2]);
  };
  if (size(train.images) == size(test.images)) return;
  throw DataError(files.test.images.string() + ": expected images of " + size(train.images) +
                  " as in " + files.train.images.string() + ", found " + size(test.images) +
                  "; are both of one data set?");
}

std::vector<std::string> numbers_below(std::size_t end) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < end; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> numbered_classes(const std::vector<std::uint8_t>& labels) {
  std::size_t classes = kUsualClasses;
  for (const std::uint8_t label : labels) classes = std::max(classes, std::size_t{label} + 1);
  return numbers_below(classes);
}

void require_no_gap(const fs::path& file, const std::vector<std::uint8_t>& labels) {
  if (labels.empty()) return;
  const auto largest = std::max_element(labels.begin(), labels.end());
  const std::string gap = unseen_targets(std::vector<std::int32_t>(labels.begin(), labels.end()),
                                         numbers_below(std::size_t{*largest} + 1));
  if (gap.empty()) return;
  throw DataError(file.string() + ": sample " + std::to_string(largest - labels.begin()) +
                  " has the label " + std::to_string(*largest) + ", but no sample has " + gap +
                  "; correct the label, or allow it with --allow-empty-classes");
}

void require_labels_in_classes(const fs::path& file, const std::vector<std::uint8_t>& labels,
                               std::size_t classes) {
  const auto outside = std::find_if(labels.begin(), labels.end(),
                                    [&](std::uint8_t label) { return label >= classes; });
  if (outside == labels.end()) return;
  throw DataError(file.string() + ": label " + std::to_string(*outside) + " of sample " +
                  std::to_string(outside - labels.begin()) + " is outside the classes 0 to " +
                  std::to_string(classes - 1) + "; correct the labels");
}

std::shared_ptr<const Dataset> make_dataset(std::string name, const IdxPair& files,
                                            const std::vector<std::string>& target_names,
                                            RawSplit raw) {
  require_labels_in_classes(files.labels, raw.labels.values, target_names.size());
  std::vector<std::int32_t> labels(raw.labels.values.begin(), raw.labels.values.end());
  return std::make_shared<const MemoryDataset>(
      DatasetInfo{std::move(name), 1, raw.images.sizes[1], raw.images.sizes[2], target_names},
      std::move(raw.images.values), std::move(labels));
}

}  // namespace

bool has_idx_files(const fs::path& directory) { return !sets_in(directory).empty(); }

std::vector<IdxFiles> all_idx_files(const fs::path& directory) {
  std::vector<IdxFiles> all;
  for (FoundSet& set : sets_below(directory)) all.push_back(std::move(set.files));
  return all;
}

IdxFiles find_idx_files(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw DataError(directory.string() + ": there is no such directory; check the path");
  }
  const std::vector<FoundSet> found = sets_below(directory);
  if (found.size() == 1) return found.front().files;
  std::string list;
  for (const FoundSet& set : found) list += (list.empty() ? "" : ", ") + set.name;
  if (!found.empty()) {
    throw DataError(directory.string() + ": there are several data sets: " + list +
                    "; name a folder that holds the four files of one");
  }
  for (const std::string& name : Naming{}.all()) {
    if (!find_file(directory, name)) list += (list.empty() ? "" : ", ") + name;
  }
  throw DataError(directory.string() + ": missing " + list +
                  " (each with or without .gz); put the four files of the data set there");
}

Splits load_idx_files(const IdxFiles& files, const std::string& name,
                      std::vector<std::string> target_names, const IdxRead& read,
                      bool allow_unseen_targets) {
  auto test_reading = std::async(std::launch::async, [&] { return read_split(files.test, read); });
  RawSplit train = read_split(files.train, read);
  RawSplit test = test_reading.get();
  require_same_image_size(files, train, test);
  if (target_names.empty()) {
    if (!allow_unseen_targets) require_no_gap(files.train.labels, train.labels.values);
    target_names = numbered_classes(train.labels.values);
  }
  return {make_dataset(name + "/train", files.train, target_names, std::move(train)),
          make_dataset(name + "/test", files.test, target_names, std::move(test))};
}

Splits load_idx_directory(const fs::path& directory, bool allow_unseen_targets) {
  return load_idx_files(
      find_idx_files(directory), directory.string(), {},
      [](const fs::path& file, int dimensions) { return read_idx(file, dimensions); },
      allow_unseen_targets);
}

}  // namespace ringlet::data
