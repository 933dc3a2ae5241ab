#include "data/picture_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/data_error.h"
#include "data/images/image.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

enum class FolderPart : std::uint8_t { none, train, val, test };

FolderPart part_called(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "train" || name == "training") return FolderPart::train;
  if (name == "val" || name == "valid" || name == "validation") return FolderPart::val;
  if (name == "test" || name == "testing") return FolderPart::test;
  return FolderPart::none;
}

/// The folders in a folder that are not hidden, by code point. `error` says why it cannot be
/// listed.
std::vector<std::string> folders_in(const fs::path& directory, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && entry->is_directory(unknown)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Folders {
  std::map<FolderPart, std::vector<std::string>> parts;
  std::vector<std::string> others;

  bool has(FolderPart part) const { return parts.contains(part); }
};

Folders folders_of(const fs::path& directory, std::error_code& error) {
  Folders found;
  std::map<FolderPart, std::vector<std::string>> parts;
  for (const std::string& name : folders_in(directory, error)) {
    const FolderPart part = part_called(name);
    (part == FolderPart::none ? found.others : parts[part]).push_back(name);
  }
  const bool beside_classes =
      !parts.empty() && std::any_of(found.others.begin(), found.others.end(),
                                    [&](const auto& n) { return holds_pictures(directory / n); });
  for (const auto& [part, names] : parts) {
    for (const std::string& name : names) {
      std::error_code unlisted;
      const bool is_class = beside_classes && holds_pictures(directory / name) &&
                            folders_in(directory / name, unlisted).empty();
      (is_class ? found.others : found.parts[part]).push_back(name);
    }
  }
  return found;
}

/// Empty where there is no such part.
fs::path the_one(const fs::path& directory, const Folders& found, FolderPart part) {
  if (!found.has(part)) return {};
  const std::vector<std::string>& names = found.parts.at(part);
  if (names.size() == 1) return directory / names[0];
  throw DataError(directory.string() + ": there are both " + names[0] + " and " + names[1] +
                  ", two names of one part; put their pictures together, or remove one");
}

}  // namespace

bool holds_pictures(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.')) continue;
    if (has_image_name(path) || foreign_ending(path)) return true;
  }
  return error == std::errc::permission_denied;  // it is told where its pictures are asked for
}

bool has_class_folders(const fs::path& directory) {
  std::error_code error;
  const Folders found = folders_of(directory, error);
  return !error && found.parts.empty() &&
         std::any_of(found.others.begin(), found.others.end(),
                     [&](const std::string& name) { return holds_pictures(directory / name); });
}

bool has_image_folders(const fs::path& directory) {
  std::error_code error;
  return folders_of(directory, error).has(FolderPart::train) || has_class_folders(directory);
}

std::vector<std::string> names_of_parts(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> all;
  for (const auto& [part, names] : folders_of(directory, error).parts) {
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

PictureParts find_parts(const fs::path& directory) {
  std::error_code error;
  const Folders found = folders_of(directory, error);
  if (error) {
    throw DataError(directory.string() + ": cannot be listed: " + error.message() +
                    "; check its permissions");
  }
  if (found.parts.empty()) return {directory, {}};
  PictureParts parts{the_one(directory, found, FolderPart::train),
                     the_one(directory, found, FolderPart::val)};
  const fs::path test = the_one(directory, found, FolderPart::test);
  if (!parts.test.empty() && !test.empty()) {
    parts.notes.push_back(directory.string() + ": tests on " + parts.test.filename().string() +
                          "; " + test.filename().string() + " is not looked at");
  }
  if (parts.test.empty()) parts.test = test;
  for (const std::string& name : found.others) {
    if (parts.train.empty() || !holds_pictures(directory / name)) continue;
    parts.notes.push_back(directory.string() + ": the pictures in " + name +
                          " are not looked at, since there is " + parts.train.filename().string());
    break;
  }
  return parts;
}

}  // namespace ringlet::data
