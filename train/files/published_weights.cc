#include "train/files/published_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/files/file_error.h"
#include "base/one_line.h"
#include "base/sha256.h"
#include "train/recipe/models.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPublisher = "https://download.pytorch.org/models/";
constexpr std::size_t kWholeSum = 64;  // digits of a SHA-256

struct Published {
  std::string_view model;
  std::vector<std::string> files;
};

/// torchvision/models/resnet.py of torchvision 0.13 and later; IMAGENET1K_V2 before V1.
const std::vector<Published>& published() {
  static const std::vector<Published> all{
      {"resnet18", {"resnet18-f37072fd.pth"}},
      {"resnet34", {"resnet34-b627a593.pth"}},
      {"resnet50", {"resnet50-11ad3fa6.pth", "resnet50-0676ba61.pth"}}};
  return all;
}

/// Nothing where it is not set; as those programs read it.
std::optional<fs::path> folder_in(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): never written
  return value != nullptr && *value != 0 ? std::optional<fs::path>(value) : std::nullopt;
}

fs::path user_cache() {
  if (const auto cache = folder_in("XDG_CACHE_HOME")) return *cache;
  return folder_in("HOME").value_or(".") / ".cache";
}

fs::path torch_cache() {
  return folder_in("TORCH_HOME").value_or(user_cache() / "torch") / "hub/checkpoints";
}

fs::path huggingface_cache() {
  if (const auto hub = folder_in("HF_HUB_CACHE")) return *hub;
  return folder_in("HF_HOME").value_or(user_cache() / "huggingface") / "hub";
}

/// Of a folder that may not be there; sorted by name.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::ranges::sort(entries);
  return entries;
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "f37072fd" of "resnet18-f37072fd.pth"; empty where there is none.
std::string sum_in(const std::string& file, const std::string& model) {
  constexpr std::string_view kEnd = ".pth";
  constexpr std::size_t kFewest = 8;
  if (!file.starts_with(model + "-") || !file.ends_with(kEnd)) return {};
  const std::string sum =
      file.substr(model.size() + 1, file.size() - model.size() - 1 - kEnd.size());
  const bool is_sum = sum.size() >= kFewest && sum.size() <= kWholeSum && is_hexadecimal(sum);
  return is_sum ? sum : std::string();
}

std::string sha256_of(const fs::path& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> piece(kPiece);
  Sha256 sum;
  while (stream.read(piece.data(), kPiece) || stream.gcount() > 0) {
    sum.update({reinterpret_cast<const std::uint8_t*>(piece.data()),
                static_cast<std::size_t>(stream.gcount())});
  }
  return sum.finish();
}

void require_sum_of_name(const fs::path& file, const std::string& promised) {
  const std::string sum = sha256_of(file);
  if (sum.starts_with(promised)) return;
  throw FileError(
      fmt::format("{}: its SHA-256 begins with {}, and its name says {}: it is damaged or another "
                  "file; move it away, and fetch it again",
                  on_one_line(file.string()), sum.substr(0, promised.size()), promised));
}

std::optional<fs::path> in_torch_cache(const std::string& model) {
  std::vector<fs::path> candidates;
  for (const std::string& file : torchvision_files(model)) {
    candidates.push_back(torch_cache() / file);
  }
  const std::vector<fs::path> others = entries_of(torch_cache());
  candidates.insert(candidates.end(), others.begin(), others.end());
  std::error_code error;
  for (const fs::path& file : candidates) {
    const std::string promised = sum_in(file.filename().string(), model);
    if (promised.empty() || !fs::is_regular_file(file, error)) continue;
    require_sum_of_name(file, promised);
    return file;
  }
  return {};
}

/// The snapshot that is the newest, as its publisher has it; else any.
std::vector<fs::path> snapshots_of(const fs::path& repository) {
  std::vector<fs::path> snapshots = entries_of(repository / "snapshots");
  std::string newest;
  std::ifstream(repository / "refs/main") >> newest;
  std::stable_partition(snapshots.begin(), snapshots.end(),
                        [&](const fs::path& path) { return path.filename() == newest; });
  return snapshots;
}

std::optional<fs::path> in_huggingface_cache(const std::string& model) {
  const std::string wanted = "models--timm--" + model;
  std::error_code error;
  for (const fs::path& repository : entries_of(huggingface_cache())) {
    const std::string name = repository.filename().string();
    if (name != wanted && !name.starts_with(wanted + ".")) continue;
    for (const fs::path& snapshot : snapshots_of(repository)) {
      const fs::path file = snapshot / "model.safetensors";
      if (!fs::is_regular_file(file, error)) continue;
      const std::string blob =
          fs::is_symlink(file, error) ? fs::read_symlink(file, error).filename().string() : "";
      if (blob.size() == kWholeSum && is_hexadecimal(blob)) require_sum_of_name(file, blob);
      return file;
    }
  }
  return {};
}

[[noreturn]] void throw_not_there(const std::string& model) {
  const std::string looked = fmt::format(
      "--init {}: there is no such file, and no weights of that name in {} or {}", model,
      on_one_line(torch_cache().string()), on_one_line(huggingface_cache().string()));
  const std::vector<std::string> files = torchvision_files(model);
  if (files.empty()) {
    throw FileError(looked + "; none that are published are known, so name a file of weights");
  }
  throw FileError(
      fmt::format("{}; fetch {}{} (its SHA-256 begins with {}) and put it into the "
                  "first of these folders, or name the file itself",
                  looked, kPublisher, files.front(), sum_in(files.front(), model)));
}

}  // namespace

std::vector<std::string> torchvision_files(const std::string& name) {
  for (const Published& one : published()) {
    if (one.model == name) return one.files;
  }
  return {};
}

bool names_weights(const fs::path& named) {
  const std::vector<std::string> models = model_names();
  std::error_code error;
  return std::ranges::find(models, named.string()) != models.end() && !fs::exists(named, error);
}

fs::path find_weights(const fs::path& named) {
  if (!names_weights(named)) return named;
  const std::string name = named.string();
  if (const auto file = in_torch_cache(name)) return *file;
  if (const auto file = in_huggingface_cache(name)) return *file;
  throw_not_there(name);
}

}  // namespace ringlet::train
