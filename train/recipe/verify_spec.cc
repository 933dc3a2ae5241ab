#include "train/recipe/verify_spec.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

/// The file's name without its extension, behind so many folders.
std::string name_with(const fs::path& file, int folders) {
  fs::path name = file.stem();
  fs::path folder = file.parent_path();
  for (int i = 0; i < folders && folder.has_filename(); ++i) {
    name = folder.filename() / name;
    folder = folder.parent_path();
  }
  return name.string();
}

}  // namespace

std::vector<Option<VerifySpec>> verify_options() {
  return {option("verify", &VerifySpec::verify,
                 {.help = "measure on these files of pairs while training, as 'ringlet verify' "
                          "does; the first decides which model OUT/best keeps",
                  .default_in_words = "none",
                  .may_become = may_always,
                  .value_name = "PAIRS,..."}),
          option("verify_every", &VerifySpec::verify_every,
                 {.help = "verify after every N steps, and at the end of the run",
                  .range = from(0),
                  .default_in_words = "at the end of each epoch",
                  .open_at_zero = true,
                  .may_become = may_always})};
}

std::vector<fs::path> verify_files(const VerifySpec& spec) {
  if (spec.verify.empty()) return {};
  std::error_code error;
  if (fs::exists(spec.verify, error)) return {spec.verify};
  std::vector<fs::path> files;
  for (std::size_t begin = 0; begin <= spec.verify.size();) {
    const std::size_t end = std::min(spec.verify.find(',', begin), spec.verify.size());
    files.emplace_back(spec.verify.substr(begin, end - begin));
    begin = end + 1;
  }
  std::set<fs::path> seen;
  for (const fs::path& file : files) {
    require(!file.empty(), "--verify", "names files with one comma between two");
    const bool is_new = seen.insert(file.lexically_normal()).second;
    require(is_new, "--verify", ("names " + file.string() + " twice; leave one out").c_str());
  }
  return files;
}

std::vector<std::string> names_of_sets(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    const auto alone_with = [&](int folders) {
      return std::ranges::count_if(files, [&](const fs::path& other) {
               return name_with(other, folders) == name_with(file, folders);
             }) == 1;
    };
    constexpr int kMost = 32;
    int folders = 0;
    while (folders < kMost && !alone_with(folders)) ++folders;
    names.push_back(folders < kMost ? name_with(file, folders) : file.string());
  }
  return names;
}

}  // namespace ringlet::train
