#include "train/files/centres.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files/json_text.h"
#include "base/hash.h"
#include "base/one_line.h"
#include "train/files/load_model.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTensor = "weight";
constexpr const char* kClasses = "ringlet.classes";
constexpr const char* kScale = "ringlet.scale";
/// Bytes of names; the head of a file may have 100 MB, and quotes take two there. Classes of more
/// go by number.
constexpr std::int64_t kMostNames = 40'000'000;

/// Null: there are none.
const nn::Parameter* centres_of(const nn::Registry& registry) {
  const auto& all = registry.parameters;
  const auto found = std::find_if(all.begin(), all.end(), [](const auto* p) { return p->of_loss; });
  return found == all.end() ? nullptr : *found;
}

TensorSpec spec_of(std::int64_t rows, std::int64_t columns) {
  return {kTensor, "F32", {rows, columns}};
}

/// The file's tensor, [rows, columns of the run's]. Throws FileError where it is none.
TensorSpec found_in(const SafetensorsFile& file, const nn::Parameter& centres) {
  const SafetensorsFile::Entry* entry = file.find(kTensor);
  const std::int64_t columns = centres.shape[1];
  if (entry == nullptr || entry->spec.shape.size() != 2) {
    throw FileError(
        fmt::format("{} has no tensor '{}' with a row for each class; name the {} of a run",
                    file.path().string(), kTensor, kCentresFile));
  }
  if (entry->spec.shape[1] == columns) return entry->spec;
  throw FileError(fmt::format(
      "{} has centres of {} numbers, and embeddings have {}; name centres of this size, or take "
      "--embedding-size {}",
      file.path().string(), entry->spec.shape[1], columns, entry->spec.shape[1]));
}

std::vector<float>& values_of(const nn::Registry& registry, const nn::Parameter& centres,
                              HostState& state) {
  state.values.resize(registry.parameters.size());
  return state.values[static_cast<std::size_t>(centres.id)];
}

/// Of `rows` rows; empty where the file has no names.
std::vector<std::string> names_in(const fs::path& file, const Metadata& metadata,
                                  std::int64_t rows) {
  const auto found = metadata.find(kClasses);
  if (found == metadata.end()) return {};
  constexpr int kFlat = 1;  // levels
  const nlohmann::json names =
      parse_json_text(file.string() + ": its " + kClasses, found->second, kFlat);
  const bool fits = names.is_array() && static_cast<std::int64_t>(names.size()) == rows &&
                    std::ranges::all_of(names, [](const auto& name) { return name.is_string(); });
  if (fits) return names.get<std::vector<std::string>>();
  throw FileError(
      fmt::format("{}: its metadata have {} that are not {} names, one for each row; "
                  "write it again without them",
                  file.string(), kClasses, rows));
}

std::string as_json(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Which row each class has; empty where the file has no names.
std::map<std::string, std::int64_t> rows_by_name(const SafetensorsFile& file, std::int64_t rows) {
  std::map<std::string, std::int64_t> by_name;
  std::int64_t row = 0;
  for (const std::string& name : names_in(file.path(), file.metadata(), rows)) {
    by_name.emplace(name, row++);
  }
  return by_name;
}

/// "ringlet.centres" of a file; empty where it does not say.
std::string stored_hash(const fs::path& file) {
  const Metadata metadata = SafetensorsStream(file).header().metadata;
  const auto found = metadata.find(kHashOfCentres);
  return found == metadata.end() ? std::string() : found->second;
}

/// As files have them: JSON is UTF-8; a folder's name need not be.
std::vector<std::string> as_stored(const std::vector<std::string>& names) {
  return parse_json(as_json(names)).get<std::vector<std::string>>();
}

}  // namespace

fs::path centres_file_of(const fs::path& named) {
  std::error_code error;
  if (!fs::is_directory(named, error)) return named;
  const fs::path finished = named / kCentresFile, unfinished = named / "state" / kCentresFile;
  return !fs::exists(finished, error) && fs::exists(unfinished, error) ? unfinished : finished;
}

CentresInfo read_centres_info(const fs::path& file) {
  const SafetensorsStream stream(file);
  const SafetensorsHeader& header = stream.header();
  CentresInfo info;
  std::vector<std::string> numbers;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.spec.name != kTensor || tensor.spec.shape.size() != 2) continue;
    info.names = names_in(file, header.metadata, tensor.spec.shape[0]);
    for (std::int64_t row = 0; info.names.empty() && row < tensor.spec.shape[0]; ++row) {
      numbers.push_back(std::to_string(row));
    }
  }
  if (info.names.empty()) info.names = std::move(numbers);
  const auto found = header.metadata.find(kScale);
  if (found == header.metadata.end()) return info;
  const std::string& text = found->second;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), info.scale);
  const bool whole = error == std::errc() && stopped == text.data() + text.size();
  constexpr double kMost = 1000;  // as --scale has it
  if (whole && static_cast<float>(info.scale) > 0 && info.scale <= kMost) return info;
  constexpr std::size_t kShown = 60;
  throw FileError(fmt::format(
      "{}: its metadata has {} = '{}', which is no number above 0 and up to 1000; write it "
      "again without it",
      file.string(), kScale, on_one_line(text, kShown)));
}

std::string save_centres(const fs::path& file, const nn::Registry& registry, const HostState& state,
                         const ModelInfo& info) {
  const nn::Parameter& centres = *centres_of(registry);
  Metadata metadata{{"format", "pt"}};
  if (std::ssize(info.output_names) == centres.shape[0]) {
    std::string names = as_json(info.output_names);
    if (std::ssize(names) <= kMostNames) metadata[kClasses] = std::move(names);
  }
  if (info.scale > 0) metadata[kScale] = fmt::format("{}", info.scale);
  metadata[kHashOfCentres] = hash_of_centres(registry, state);
  const std::vector<TensorToWrite> tensors{
      {spec_of(centres.shape[0], centres.shape[1]),
       state.values[static_cast<std::size_t>(centres.id)].data()}};
  return write_safetensors(file, tensors, metadata);
}

std::string hash_of_centres(const nn::Registry& registry, const HostState& state) {
  if (!has_centres(registry)) return {};
  const auto& values = state.values[static_cast<std::size_t>(centres_of(registry)->id)];
  return fmt::format("{:016x}", hash_bytes(values.data(), values.size() * sizeof(float)));
}

HostState load_with_centres(const fs::path& model, const fs::path& centres,
                            const nn::Registry& registry, const std::vector<std::string>& classes,
                            NonFinite nonfinite) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    const std::string wanted = stored_hash(model);
    HostState state = load_model(model, registry, Head::as_in_file, nonfinite);
    take_centres(centres, registry, classes, state, nonfinite);
    const std::string found = stored_hash(centres);
    const bool went_on = stored_hash(model) != wanted;
    if (!went_on && (wanted == found || wanted.empty() || found.empty())) return state;
    if (went_on && i < kTries) continue;
    throw FileError(fmt::format(
        "{} are not the centres that {} was saved with; name the model of a run beside which its "
        "own centres lie",
        centres.string(), model.string()));
  }
}

std::string load_centres(const fs::path& path, const nn::Registry& registry, HostState& state) {
  const nn::Parameter& centres = *centres_of(registry);
  const SafetensorsFile file(path);
  file.match(std::vector<TensorSpec>{spec_of(centres.shape[0], centres.shape[1])});
  values_of(registry, centres, state) = floats_of(file, kTensor);
  return file.sum();
}

void take_centres(const fs::path& path, const nn::Registry& registry,
                  const std::vector<std::string>& classes, HostState& state, NonFinite nonfinite) {
  const nn::Parameter& centres = *centres_of(registry);
  const SafetensorsFile file(path);
  const std::int64_t rows = found_in(file, centres).shape[0], columns = centres.shape[1];
  const std::vector<float> read = floats_of(file, kTensor, nonfinite);
  const auto by_name = rows_by_name(file, rows);
  std::vector<float>& values = values_of(registry, centres, state);
  const std::vector<std::string> wanted = as_stored(classes);
  const bool named = !by_name.empty() && std::ranges::all_of(wanted, [&](const auto& name) {
    return by_name.contains(name);
  });
  if (!named) {
    if (rows == centres.shape[0] && by_name.empty()) {
      values = read;
      return;
    }
    throw FileError(fmt::format(
        "{} has centres of {} classes, which the {} of the data are not among, by name or number; "
        "name centres of these, or leave --init-centres out, and they start anew",
        path.string(), rows, centres.shape[0]));
  }
  values.clear();
  for (const std::string& name : wanted) {
    const auto begin = read.begin() + by_name.at(name) * columns;
    values.insert(values.end(), begin, begin + columns);
  }
}

}  // namespace ringlet::train
