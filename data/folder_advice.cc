#include "data/folder_advice.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <vector>

#include "data/images/image.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

/// The names in a folder that are not hidden, sorted; as many as are enough to know it by.
std::vector<std::string> some_names(const fs::path& folder) {
  constexpr std::size_t kEnough = 10'000;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
    if (names.size() == kEnough) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool holds_pictures(const fs::path& folder) {
  const std::vector<std::string> names = some_names(folder);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return has_image_name(name) || foreign_ending(name);
  });
}

/// What a run looks for instead of `name`: "train" for "Train" and "training"; else nothing.
std::optional<std::string> meant_by(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "train" || name == "training") return "train";
  if (name == "val" || name == "valid" || name == "validation") return "val";
  if (name == "test" || name == "testing") return "test";
  return {};
}

/// "a", "a and b", "a, b and 5 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = names.size() <= kShown ? names.size() : kShown - 1;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i > 0 && i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace

std::string folder_advice(const fs::path& directory) {
  std::vector<std::string> classes, misnamed, renamed, nested;
  std::error_code error;
  const std::vector<std::string> names = some_names(directory);
  const auto is_there = [&](const std::string& name) {
    return fs::is_directory(directory / name, error);
  };
  for (const std::string& name : names) {
    if (!is_there(name)) continue;
    const std::optional<std::string> wanted = meant_by(name);
    if (wanted && *wanted != name && !is_there(*wanted)) {
      misnamed.push_back(name);
      renamed.push_back(name + " to " + *wanted);
    }
    if (!wanted && holds_pictures(directory / name)) classes.push_back(name);
    if (!wanted && is_there(name + "/train")) nested.push_back(name);
  }
  const std::string at = directory.string() + ": ";
  if (!misnamed.empty()) {
    return at + "pictures are not looked for in " + listed(misnamed) +
           "; put them into train/CLASS and val/CLASS (rename " + listed(renamed) + ")";
  }
  if (is_there("train")) return {};
  for (const char* part : {"val", "test"}) {
    if (!is_there(part)) continue;
    return at + "there is " + part +
           ", but no train with the pictures to train on; put them into train/CLASS";
  }
  if (!nested.empty()) return at + "name the folder in it that holds train: " + listed(nested);
  if (!classes.empty()) {
    return at + "there are pictures in " + listed(classes) +
           ", but no train; put them into train/CLASS, and some of each class into val/CLASS";
  }
  if (!holds_pictures(directory)) return {};
  return at +
         "there are pictures, but no train; put those of each class into train/CLASS, and some "
         "into val/CLASS";
}

}  // namespace ringlet::data
