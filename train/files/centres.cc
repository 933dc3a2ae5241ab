#include "train/files/centres.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "base/files/json_text.h"
#include "base/hash.h"
#include "base/one_line.h"
#include "data/renumbered_dataset.h"
#include "train/files/load_model.h"
#include "train/files/row_files.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTensor = kWeightTensor;
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

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_found(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// What has the metadata of these centres.
fs::path head_of(const fs::path& centres) {
  return is_folder(centres) ? centres / kIndexFile : centres;
}

/// Centres as they lie in a file, or in a folder of files.
struct Stored {
  fs::path path;
  Metadata metadata;
  std::int64_t rows = 0;
  std::vector<float> values;
};

void require_columns(const fs::path& path, std::int64_t columns, const nn::Parameter& centres) {
  if (columns == centres.shape[1]) return;
  throw FileError(fmt::format(
      "{} has centres of {} numbers, and embeddings have {}; name centres of this size, or take "
      "--embedding-size {}",
      path.string(), columns, centres.shape[1], columns));
}

Stored read_folder(const fs::path& path, const nn::Parameter& centres, NonFinite nonfinite) {
  const RowFiles files(path);
  require_columns(path, files.columns(), centres);
  Stored stored{path, files.metadata(), files.rows(), files.weights()};
  const auto broken =
      std::ranges::find_if(stored.values, [](float x) { return !std::isfinite(x); });
  if (broken == stored.values.end() || nonfinite == NonFinite::taken) return stored;
  throw FileError(fmt::format("{}: row {} has a number that is not finite ({}); name other centres",
                              path.string(), (broken - stored.values.begin()) / files.columns(),
                              *broken));
}

/// Throws FileError where there are no centres of the run's size.
Stored read_stored(const fs::path& path, const nn::Parameter& centres, NonFinite nonfinite) {
  if (is_folder(path)) return read_folder(path, centres, nonfinite);
  const SafetensorsFile file(path);
  const SafetensorsFile::Entry* entry = file.find(kTensor);
  if (entry == nullptr || entry->spec.shape.size() != 2) {
    throw FileError(
        fmt::format("{} has no tensor '{}' with a row for each class; name the {} of a run",
                    path.string(), kTensor, kCentresFile));
  }
  require_columns(path, entry->spec.shape[1], centres);
  return {path, file.metadata(), entry->spec.shape[0], floats_of(file, kTensor, nonfinite)};
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

/// Of the rows, each once; empty where the file has none.
std::vector<std::string> names_of_rows(const Stored& stored) {
  std::vector<std::string> names = names_in(stored.path, stored.metadata, stored.rows);
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    if (seen.insert(name).second) continue;
    throw FileError(fmt::format(
        "{}: its metadata have two {} that are called '{}'; write it again without them",
        stored.path.string(), kClasses, on_one_line(name)));
  }
  return names;
}

/// "ringlet.centres" of a model or of centres; empty where they do not say.
std::string stored_hash(const fs::path& path) {
  const Metadata metadata = SafetensorsStream(head_of(path)).header().metadata;
  const auto found = metadata.find(kHashOfCentres);
  return found == metadata.end() ? std::string() : found->second;
}

/// As files have them: JSON is UTF-8; a folder's name need not be.
std::vector<std::string> as_stored(const std::vector<std::string>& names) {
  return parse_json(as_json(names)).get<std::vector<std::string>>();
}

}  // namespace

fs::path centres_file_of(const fs::path& named) {
  if (!is_folder(named) || is_found(named / kIndexFile)) return named;
  const fs::path unfinished = named / "state" / kCentresFile;
  fs::path found = centres_beside(named / kModelFile);
  if (!found.empty()) return found;
  return is_found(unfinished) ? unfinished : named / kCentresFile;
}

fs::path centres_beside(const fs::path& model) {
  const fs::path folder = model.parent_path();
  for (const fs::path& found :
       {folder / kCentresFile, folder / kCentresFolder, folder / "state" / kCentresFolder}) {
    if (is_found(head_of(found))) return found;
  }
  return {};
}

CentresInfo read_centres_info(const fs::path& file) {
  const SafetensorsStream stream(head_of(file));
  const SafetensorsHeader& header = stream.header();
  std::int64_t rows = is_folder(file) ? RowFiles(file).rows() : 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.spec.name == kTensor && tensor.spec.shape.size() == 2) rows = tensor.spec.shape[0];
  }
  CentresInfo info;
  if (rows > 0) info.names = names_in(file, header.metadata, rows);
  for (std::int64_t row = 0; std::ssize(info.names) < rows; ++row) {
    info.names.push_back(std::to_string(row));
  }
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

namespace {

Metadata metadata_of(const nn::Parameter& centres, const std::string& hash, const ModelInfo& info) {
  Metadata metadata{{"format", "pt"}};
  if (std::ssize(info.output_names) == centres.shape[0]) {
    std::string names = as_json(info.output_names);
    if (std::ssize(names) <= kMostNames) metadata[kClasses] = std::move(names);
  }
  if (info.scale > 0) metadata[kScale] = fmt::format("{}", info.scale);
  metadata[kHashOfCentres] = hash;
  return metadata;
}

}  // namespace

std::string save_centres(const fs::path& file, const nn::Registry& registry, const HostState& state,
                         const ModelInfo& info) {
  const nn::Parameter& centres = *centres_of(registry);
  const Metadata metadata = metadata_of(centres, hash_of_centres(registry, state), info);
  const std::vector<TensorToWrite> tensors{
      {spec_of(centres.shape[0], centres.shape[1]),
       state.values[static_cast<std::size_t>(centres.id)].data()}};
  return write_safetensors(file, tensors, metadata);
}

std::string hash_of_centres(const nn::Registry& registry, const HostState& state) {
  if (!has_centres(registry)) return {};
  if (state.rows_apart) return state.rows_apart->hash;
  const nn::Parameter& centres = *centres_of(registry);
  const auto& values = state.values[static_cast<std::size_t>(centres.id)];
  return hash_in_words(hash_of_rows(values.data(), 0, centres.shape[0], centres.shape[1]));
}

std::uint64_t hash_of_rows(const float* values, std::int64_t first, std::int64_t rows,
                           std::int64_t columns) {
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    sum += hash_bytes(values + row * columns, static_cast<std::size_t>(columns) * sizeof(float),
                      static_cast<std::uint64_t>(first + row));
  }
  return sum;
}

std::string hash_in_words(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string save_centres_index(const fs::path& file, const nn::Registry& registry,
                               const std::string& hash, const ModelInfo& info) {
  const nn::Parameter& centres = *centres_of(registry);
  Metadata metadata = metadata_of(centres, hash, info);
  metadata[kAllRows] = std::to_string(centres.shape[0]);
  return write_safetensors(file, {}, metadata);
}

void join_centres(const fs::path& folder, const fs::path& path) {
  const RowFiles files(folder);
  Metadata metadata = files.metadata();
  metadata.erase(kAllRows);
  const TensorSpec spec = spec_of(files.rows(), files.columns());
  SafetensorsWriter file(path, std::span(&spec, 1), metadata);
  constexpr std::int64_t kPiece = 1 << 20;  // numbers
  const std::int64_t most = std::max<std::int64_t>(1, kPiece / files.columns());
  std::vector<float> piece;
  for (std::int64_t row = 0; row < files.rows(); row += most) {
    const std::int64_t end = std::min(files.rows(), row + most);
    piece.resize(static_cast<std::size_t>((end - row) * files.columns()));
    files.read(kTensor, row, end, piece.data());
    file.write(piece.data(), piece.size() * sizeof(float));
  }
  file.commit();
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
  Stored stored = read_stored(path, centres, nonfinite);
  const std::int64_t columns = centres.shape[1];
  const std::vector<std::string> names = names_of_rows(stored);
  std::vector<float>& values = values_of(registry, centres, state);
  const auto rows = data::indices_of(as_stored(classes), names);
  if (!rows || names.empty()) {
    if (stored.rows == centres.shape[0] && names.empty()) {
      values = std::move(stored.values);
      return;
    }
    throw FileError(fmt::format(
        "{} has centres of {} classes, which the {} of the data are not among, by name or number; "
        "name centres of these, or leave --init-centres out, and they start anew",
        path.string(), stored.rows, centres.shape[0]));
  }
  values.clear();
  for (const std::int32_t row : *rows) {
    const auto begin = stored.values.begin() + row * columns;
    values.insert(values.end(), begin, begin + columns);
  }
}

}  // namespace ringlet::train
