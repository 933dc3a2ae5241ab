#include "data/picture_list.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/data_error.h"
#include "base/one_line.h"
#include "data/images/image.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamed = 3;  // of those that were passed over
constexpr std::size_t kNamedForeign = 100;

bool is_hidden(const std::string& name) { return name.starts_with('.'); }

/// The names in a folder, by code point: the order of UTF-8's bytes. Throws DataError.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(folder.string() + ": cannot be listed: " + error.code().message() +
                    "; check its permissions");
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Goes through the folders of one class; of all, where it begins at "".
class ClassWalk {
 public:
  ClassWalk(const fs::path& root, std::int32_t label, PictureList& list, bool passes_closed = false)
      : root_(root), label_(label), list_(list), passes_closed_(passes_closed) {}

  void visit(const std::string& below) {
    std::error_code no_path;
    const fs::path real = fs::canonical(root_ / below, no_path);
    if (!no_path && !seen_.insert(real.string()).second) return;  // a link leads back
    std::vector<std::string> folders;
    for (const std::string& name : names_in(root_ / below)) {
      const std::string path = below.empty() ? name : std::string(below).append("/").append(name);
      std::error_code error;
      if (is_hidden(name)) {
        pass(path);
      } else if (fs::is_directory(root_ / path, error)) {
        folders.push_back(path);
      } else {
        take(path);
      }
    }
    for (const std::string& folder : folders) go_into(folder);
  }

  void pass(const std::string& path) {
    ++list_.passed_count;
    if (list_.passed.size() < kNamed) list_.passed.push_back(path);
  }

  void stray(const std::string& path) {
    ++list_.stray_count;
    if (list_.stray.size() < kNamed) list_.stray.push_back(path);
  }

 private:
  /// Where pictures are looked for all over, some folders are nobody's business: lost+found.
  void go_into(const std::string& folder) {
    if (passes_closed_ && ::access((root_ / folder).c_str(), R_OK | X_OK) != 0) return pass(folder);
    visit(folder);
  }

  void take(const std::string& path) {
    const fs::path file = root_ / path;
    if (const auto ending = foreign_ending(file)) {
      ++list_.foreign[{*ending, path.substr(0, path.find('/'))}];
      if (list_.foreign_files.size() < kNamedForeign) list_.foreign_files.push_back(path);
      return;
    }
    if (!has_image_name(file)) return pass(path);
    std::error_code error;  // of a link that leads nowhere: its picture is told when it is read
    const std::uintmax_t bytes = fs::file_size(file, error);
    list_.files.push_back({path, error ? 0 : bytes, label_});
  }

  const fs::path& root_;
  std::int32_t label_;
  PictureList& list_;
  bool passes_closed_;          // folders that cannot be listed
  std::set<std::string> seen_;  // folders, without links
};

}  // namespace

PictureList list_pictures(const fs::path& folder) {
  PictureList list;
  for (const std::string& name : names_in(folder)) {
    std::error_code error;
    ClassWalk walk(folder, static_cast<std::int32_t>(list.classes.size()), list);
    if (is_hidden(name) || !fs::is_directory(folder / name, error)) {
      const bool stray = !is_hidden(name) && has_image_name(name);
      stray ? walk.stray(name) : walk.pass(name);
      continue;
    }
    if (!is_utf8(name)) {  // a model keeps the names of its classes, and others look for them there
      throw DataError(folder.string() + ": the name of the class " + on_one_line(name) +
                      " is not UTF-8, as a model's names of classes have to be; rename the folder");
    }
    list.classes.push_back(name);
    walk.visit(name);
  }
  return list;
}

PictureList list_pictures_below(const fs::path& folder) {
  PictureList list;
  constexpr bool kPassesClosed = true;
  ClassWalk(folder, 0, list, kPassesClosed).visit("");
  return list;
}

namespace {

/// "a, b, ..." of `count` names.
std::string some_of(const std::vector<std::string>& names, std::int64_t count) {
  std::string text;
  for (const std::string& name : names) text += (&name == &names[0] ? "" : ", ") + name;
  return text + (count > std::ssize(names) ? ", ..." : "");
}

}  // namespace

std::string passed_over(const fs::path& folder, const PictureList& list) {
  if (list.passed_count == 0) return {};
  const bool one = list.passed_count == 1;
  return folder.string() + ": passed over " + std::to_string(list.passed_count) +
         (one ? " entry that is" : " entries that are") +
         " hidden or no picture: " + some_of(list.passed, list.passed_count);
}

std::string stray_pictures(const fs::path& folder, const PictureList& list) {
  if (list.stray_count == 0) return {};
  const bool one = list.stray_count == 1;
  return folder.string() + ": passed over " + std::to_string(list.stray_count) +
         (one ? " picture that lies" : " pictures that lie") +
         " beside the folders of classes: " + some_of(list.stray, list.stray_count) +
         "; move each into the folder of its class";
}

std::string foreign_pictures(const PictureList& list, const std::string& of_class) {
  constexpr int kShown = 6;
  std::string text;
  int shown = 0;
  for (const auto& [kind, count] : list.foreign) {
    const auto& [ending, name] = kind;
    if (!of_class.empty() && name != of_class) continue;
    if (shown++ == kShown) return text + ", ...";
    text.append(text.empty() ? "" : ", ").append(std::to_string(count)).append(" ");
    text.append(ending).append(" in ").append(name);
  }
  return text;
}

std::string passed_over_foreign(const fs::path& folder, const std::string& foreign) {
  return folder.string() + ": passed over pictures that are not read by their endings: " + foreign +
         "; " + kForeignRemedy;
}

}  // namespace ringlet::data
