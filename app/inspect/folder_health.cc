#include "app/inspect/folder_health.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/data_error.h"
#include "data/picture_list.h"
#include "data/picture_spec.h"
#include "data/picture_split.h"

namespace ringlet::app::inspect {

namespace fs = std::filesystem;

namespace {

/// Adds the pictures of a part, whose classes get their numbers by name.
void add_part(const fs::path& folder, const fs::path& part, bool tested, FolderHealth& health) {
  const data::PictureList list = data::list_pictures(part);
  std::vector<std::int32_t> numbers;
  for (const std::string& name : list.classes) {
    const auto known = std::find(health.classes.begin(), health.classes.end(), name);
    numbers.push_back(static_cast<std::int32_t>(known - health.classes.begin()));
    if (known == health.classes.end()) health.classes.push_back(name);
  }
  const std::string below = part == folder ? "" : part.filename().string() + "/";
  for (const data::PictureFile& file : list.files) {
    health.pictures.push_back(
        {below + file.path, numbers[static_cast<std::size_t>(file.label)], tested});
  }
  for (const auto& [kind, count] : list.foreign) health.foreign[kind.first] += count;
  health.passed += list.passed_count;
  if (const std::string stray = data::stray_pictures(part, list); !stray.empty()) {
    health.parts.notes.push_back(stray);
  }
  for (const std::string& name : list.passed) health.passed_names.push_back(below + name);
  for (const std::string& name : list.foreign_files) health.foreign_names.push_back(below + name);
}

/// As a run without --split would.
void split(const fs::path& folder, FolderHealth& health) {
  std::vector<std::int32_t> labels;
  std::vector<data::PicturePrint> prints;
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < health.pictures.size(); ++i) {
    if (!health.prints[i].defect.empty()) continue;
    labels.push_back(health.pictures[i].label);
    prints.push_back(health.prints[i]);
    whole.push_back(i);
  }
  try {
    const data::PictureSplit split =
        data::split_pictures(folder.string(), health.classes, labels, prints, data::kUsualSplit);
    for (const std::int64_t i : split.test) {
      health.pictures[whole[static_cast<std::size_t>(i)]].tested = true;
    }
  } catch (const DataError& error) {
    health.cannot_be_split = error.what();
  }
}

void find_alike(FolderHealth& health) {
  const std::vector<std::size_t> near = data::alike(health.prints, true);
  const std::vector<std::size_t> equal = data::alike(health.prints, false);
  std::map<std::size_t, FolderHealth::Alike> groups;
  for (std::size_t i = 0; i < near.size(); ++i) {
    FolderHealth::Alike& group = groups[near[i]];
    if (group.pictures.empty()) group.equal = true;
    const FolderHealth::Picture &first = health.pictures[near[i]], &picture = health.pictures[i];
    group.pictures.push_back(i);
    group.equal &= equal[i] == equal[near[i]];
    group.across_parts |= picture.tested != first.tested;
    group.across_classes |= picture.label != first.label;
  }
  std::map<std::size_t, std::int64_t> twins;
  for (const std::size_t first : equal) ++twins[first];
  for (const auto& [first, group] : groups) {
    if (group.pictures.size() < 2) continue;
    for (const std::size_t i : group.pictures) {
      ++(twins[equal[i]] > 1 ? health.equal_pictures : health.near_pictures);
    }
  }
  for (auto& [first, group] : groups) {
    if (group.pictures.size() > 1) health.alike.push_back(std::move(group));
  }
  std::stable_sort(health.alike.begin(), health.alike.end(), [](const auto& a, const auto& b) {
    return std::pair(a.across_parts, a.across_classes) >
           std::pair(b.across_parts, b.across_classes);
  });
}

/// How many a run would train on, as `ringlet train` counts them before it has read any.
std::int64_t pictures_of_a_run(const FolderHealth& health) {
  if (!health.is_split) {
    return std::count_if(health.pictures.begin(), health.pictures.end(),
                         [](const FolderHealth::Picture& picture) { return !picture.tested; });
  }
  return std::llround(static_cast<double>(health.pictures.size()) * (1 - data::kUsualSplit));
}

}  // namespace

std::int64_t FolderHealth::count(bool tested) const {
  std::int64_t sum = 0;
  for (const auto& of_class : counts) sum += of_class[tested ? 1 : 0];
  return sum;
}

std::int64_t FolderHealth::broken() const {
  return std::count_if(prints.begin(), prints.end(),
                       [](const data::PicturePrint& print) { return !print.defect.empty(); });
}

std::vector<int> FolderHealth::shorter_sides() const {
  std::vector<int> sides;
  for (const data::PicturePrint& print : prints) {
    if (print.defect.empty()) sides.push_back(std::min(print.width, print.height));
  }
  std::sort(sides.begin(), sides.end());
  return sides;
}

FolderHealth examine_folder(const fs::path& folder) {
  FolderHealth health;
  health.parts = data::find_parts(folder);
  health.is_split = health.parts.test.empty();
  add_part(folder, health.parts.train, false, health);
  if (!health.is_split) add_part(folder, health.parts.test, true, health);
  std::vector<fs::path> files;
  for (const FolderHealth::Picture& picture : health.pictures)
    files.push_back(folder / picture.name);
  health.prints = data::print_pictures(files);
  if (health.is_split) split(health.parts.train, health);
  find_alike(health);
  health.counts.resize(health.classes.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FolderHealth::Picture& picture = health.pictures[i];
    const bool broken = !health.prints[i].defect.empty();
    ++health.counts[static_cast<std::size_t>(picture.label)][broken ? 2 : picture.tested ? 1 : 0];
  }
  std::vector<int> sides;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool trained = health.is_split || !health.pictures[i].tested;
    const data::PicturePrint& print = health.prints[i];
    if (trained && print.defect.empty()) sides.push_back(std::min(print.width, print.height));
  }
  std::sort(sides.begin(), sides.end());
  if (!sides.empty()) {
    const std::int64_t pictures = pictures_of_a_run(health);
    health.fit = train::fit_to_pictures(sides[sides.size() / 2], pictures);
    health.recipe = train::in_words(train::usual_for_pictures(health.fit.model, {}, pictures));
  }
  return health;
}

std::string cure_for(const std::string& ending) {
  static const std::map<std::string, std::string> kCures{
      {".heic", "heif-convert a.heic a.jpg"},
      {".heif", "heif-convert a.heif a.jpg"},
      {".avif", "avifdec a.avif a.png"},
      {".jxl", "djxl a.jxl a.png"},
      {".jp2", "opj_decompress -i a.jp2 -o a.png"},
      {".svg", "rsvg-convert a.svg -o a.png"},
      {".pbm", "pnmtopng a.pbm > a.png"}};
  const auto known = kCures.find(ending);
  if (known != kCures.end()) return known->second;
  for (const char* raw : {".dng", ".cr2", ".nef", ".arw", ".raw"}) {
    if (ending == raw) return "it is a camera's raw data: develop it, and save a JPEG";
  }
  return "convert a" + ending + " a.png (ImageMagick)";
}

}  // namespace ringlet::app::inspect
