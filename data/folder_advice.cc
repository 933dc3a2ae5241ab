#include "data/folder_advice.h"

#include <algorithm>
#include <vector>

#include "data/picture_parts.h"

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

/// Whether there is a folder, and nothing but folders.
bool holds_folders_alone(const fs::path& directory) {
  const std::vector<std::string> names = some_names(directory);
  std::error_code error;
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return fs::is_directory(directory / name, error);
  });
}

/// Whether it is one class's, whose pictures lie a folder too deep.
bool holds_one_folder(const fs::path& folder) {
  const std::vector<std::string> names = some_names(folder);
  std::error_code error;
  return names_of_parts(folder).empty() &&
         std::count_if(names.begin(), names.end(), [&](const std::string& name) {
           return fs::is_directory(folder / name, error);
         }) == 1;
}

}  // namespace

std::string folder_advice(const fs::path& directory) {
  const std::string at = directory.string() + ": ";
  std::error_code error;
  const fs::directory_iterator can_be_listed(directory, error);
  if (error) return at + "cannot be listed: " + error.message() + "; check its permissions";
  const std::vector<std::string> parts = names_of_parts(directory);
  if (!parts.empty()) {
    return at + "there is " + parts.front() +
           ", but no train with the pictures to train on; put them into train/CLASS, or name " +
           (directory / parts.front()).string() + " to take that alone";
  }
  std::vector<std::string> nested, deeper;
  for (const std::string& name : some_names(directory)) {
    if (!fs::is_directory(directory / name, error)) continue;
    if (has_image_folders(directory / name)) nested.push_back(name);
    for (const std::string& below : some_names(directory / name)) {
      const fs::path folder = directory / name / below;
      if (fs::is_directory(folder, error) && has_image_folders(folder)) {
        deeper.push_back(std::string(name).append("/").append(below));
      }
    }
  }
  const bool are_classes =
      nested.size() > 1 && std::all_of(nested.begin(), nested.end(), [&](const std::string& name) {
        return holds_one_folder(directory / name);
      });
  if (are_classes) {
    return at + "the pictures of " + listed(nested) +
           " lie a folder too deep; move those of each class up into its folder";
  }
  if (nested.empty()) nested = deeper;
  if (!nested.empty()) {
    return at +
           "name the folder in it that holds train, or a folder for each class: " + listed(nested);
  }
  if (holds_folders_alone(directory)) {
    return at +
           "there are folders, and no picture in them; put those of each class into its folder";
  }
  if (!holds_pictures(directory)) return {};
  return at +
         "there are pictures, but no folders; put those of each class into a folder of its own";
}

}  // namespace ringlet::data
