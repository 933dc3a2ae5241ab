#include "train/files/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_stream.h"
#include "train/recipe/classification_spec.h"
#include "train/recipe/models.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

constexpr int kLargestSide = 1 << 14;  // pixels; beyond it a file is broken rather than large
constexpr std::size_t kMostOutputs = 1 << 16;
constexpr std::int64_t kMostSamples = std::numeric_limits<std::int32_t>::max();

/// Takes the texts of one file apart; every complaint names the file and the text.
class MetadataReader {
 public:
  MetadataReader(const fs::path& file, const Metadata& metadata)
      : file_(file), metadata_(metadata) {}

  const std::string& text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found != metadata_.end()) return found->second;
    throw FileError(
        fmt::format("{}: its metadata names a model of Ringlet's but lacks {}; save it "
                    "again, or leave all of ringlet.* out",
                    file_.string(), key));
  }

  /// Numbers between commas.
  std::vector<float> numbers(const std::string& key) const {
    const std::string& digits = text(key);
    const char *at = digits.data(), *end = at + digits.size();
    std::vector<float> values(1);
    while (true) {
      const auto [stopped, error] = std::from_chars(at, end, values.back());
      const bool good = error == std::errc() && std::isfinite(values.back());
      if (!good || (stopped != end && *stopped != ',')) fail(key, "a finite number");
      if (stopped == end) return values;
      at = stopped + 1;
      values.push_back(0);
    }
  }
  float number(const std::string& key) const {
    const std::vector<float> values = numbers(key);
    if (values.size() != 1) fail(key, "a finite number");
    return values[0];
  }
  /// A number above 0 and below 1.
  double share(const std::string& key) const {
    const std::string& digits = text(key);
    double value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || stopped != end || !(value > 0 && value < 1)) {
      fail(key, "a number above 0 and below 1");
    }
    return value;
  }
  data::PerChannel per_channel(const std::string& key, int channels) const {
    std::vector<float> values = numbers(key);
    if (values.size() == 1 || std::ssize(values) == channels) {
      return data::PerChannel(std::move(values));
    }
    fail(key, fmt::format("a finite number, or one for each of {} channels", channels));
  }

  nlohmann::json list(const std::string& key, const std::string& wanted) const {
    constexpr int kFlat = 1;  // levels
    nlohmann::json json = parse_json_text(file_.string() + ": its " + key, text(key), kFlat);
    if (!json.is_array()) fail(key, wanted);
    return json;
  }

  /// As many whole numbers as `names` names, "[channels,height,width]", each from 1 to `most`.
  std::vector<std::int64_t> counts(const std::string& key, const std::string& names,
                                   std::int64_t most) const {
    const std::string wanted = fmt::format("{}, each a whole number from 1 to {}", names, most);
    const nlohmann::json numbers = list(key, wanted);
    const auto size = static_cast<std::size_t>(std::count(names.begin(), names.end(), ',') + 1);
    const bool good = numbers.size() == size &&
                      std::all_of(numbers.begin(), numbers.end(), [most](const auto& number) {
                        return number.is_number_unsigned() && number >= 1 && number <= most;
                      });
    if (!good) fail(key, wanted);
    return numbers.get<std::vector<std::int64_t>>();
  }

  [[noreturn]] void fail(const std::string& key, const std::string& wanted) const {
    constexpr std::size_t kShown = 60;
    throw FileError(fmt::format("{}: its metadata has {} = '{}', which is not {}", file_.string(),
                                key, on_one_line(metadata_.at(key), kShown), wanted));
  }

 private:
  const fs::path& file_;
  const Metadata& metadata_;
};

constexpr const char* kTaskKey = "ringlet.task";
constexpr const char* kUprightPhotographs = "upright";
constexpr const char* kStored = "as stored";
constexpr const char* kLeftOut = "left out";

void read_input(const MetadataReader& reader, ModelInfo& info) {
  const auto extents = reader.counts("ringlet.input", "[channels,height,width]", kLargestSide);
  info.channels = static_cast<int>(extents[0]);
  info.height = static_cast<int>(extents[1]);
  info.width = static_cast<int>(extents[2]);
}

void read_output_names(const MetadataReader& reader, ModelInfo& info) {
  const char* key = "ringlet.classes";
  const std::string wanted = fmt::format("a list of 1 to {} names", kMostOutputs);
  const nlohmann::json names = reader.list(key, wanted);
  if (names.empty() || names.size() > kMostOutputs) reader.fail(key, wanted);
  for (const nlohmann::json& name : names) {
    if (!name.is_string()) reader.fail(key, wanted);
    info.output_names.push_back(name.get<std::string>());
  }
}

int read_embedding(const MetadataReader& reader) {
  const char* key = "ringlet.embedding";
  constexpr int kMost = 65536;
  int size = 0;
  const std::string text = reader.text(key);
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool whole = error == std::errc() && stopped == text.data() + text.size();
  if (whole && size >= 1 && size <= kMost) return size;
  reader.fail(key, fmt::format("a whole number from 1 to {}", kMost));
}

/// JSON is UTF-8; a folder's name need not be.
std::string as_json(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string utf8(const std::string& text) { return parse_json(as_json(text)).get<std::string>(); }

void check_model(const MetadataReader& reader, const std::string& model) {
  const std::vector<std::string> known = model_names();
  if (std::find(known.begin(), known.end(), model) != known.end()) return;
  reader.fail("ringlet.model",
              fmt::format("a model that this version knows ({})", fmt::join(known, ", ")));
}

}  // namespace

nn::ModelInput ModelInfo::input() const {
  const int outputs = embedding > 0 ? embedding : static_cast<int>(output_names.size());
  return {channels, height, width, outputs};
}

Metadata to_metadata(const ModelInfo& info) {
  Metadata metadata{{"format", "pt"}};
  const bool is_other_task = !info.task.empty() && info.task != kClassification;
  if (is_other_task) metadata[kTaskKey] = utf8(info.task);
  if (info.model.empty()) return metadata;
  metadata.merge(
      Metadata{{"ringlet.version", info.version},
               {"ringlet.model", info.model},
               {"ringlet.data", utf8(info.data)},
               {"ringlet.input", fmt::format("[{},{},{}]", info.channels, info.height, info.width)},
               {"ringlet.mean", fmt::format("{}", fmt::join(info.mean.values(), ","))},
               {"ringlet.deviation", fmt::format("{}", fmt::join(info.deviation.values(), ","))}});
  if (info.embedding > 0) {
    metadata["ringlet.embedding"] = fmt::format("{}", info.embedding);
  } else {
    metadata["ringlet.classes"] = as_json(info.output_names);
  }
  if (info.train_samples > 0) {
    metadata["ringlet.samples"] = fmt::format("[{},{}]", info.train_samples, info.test_samples);
  }
  if (info.photographs) metadata["ringlet.photographs"] = info.exif ? kUprightPhotographs : kStored;
  if (info.split > 0) metadata["ringlet.split"] = fmt::format("{}", info.split);
  if (info.skip_broken) metadata["ringlet.broken"] = kLeftOut;
  if (info.background) metadata["ringlet.background"] = fmt::format("{}", *info.background);
  return metadata;
}

std::optional<ModelInfo> parse_model_info(const fs::path& file, const Metadata& metadata) {
  if (!metadata.contains("ringlet.model")) return {};
  const MetadataReader reader(file, metadata);
  ModelInfo info;
  if (metadata.contains(kTaskKey)) info.task = reader.text(kTaskKey);
  info.model = reader.text("ringlet.model");
  check_model(reader, info.model);
  info.version = reader.text("ringlet.version");
  info.data = reader.text("ringlet.data");
  if (metadata.contains("ringlet.samples")) {
    const auto samples = reader.counts("ringlet.samples", "[training,test]", kMostSamples);
    info.train_samples = samples[0];
    info.test_samples = samples[1];
  }
  read_input(reader, info);
  if (metadata.contains("ringlet.embedding")) {
    info.embedding = read_embedding(reader);
  } else {
    read_output_names(reader, info);
  }
  info.mean = reader.per_channel("ringlet.mean", info.channels);
  info.deviation = reader.per_channel("ringlet.deviation", info.channels);
  for (const float deviation : info.deviation.values()) {
    if (deviation <= 0) reader.fail("ringlet.deviation", "greater than 0");
  }
  if (metadata.contains("ringlet.photographs")) {
    const std::string how = reader.text("ringlet.photographs");
    info.photographs = true;
    info.exif = how != kStored;
    if (info.exif && how != kUprightPhotographs) {
      reader.fail("ringlet.photographs", "upright or as stored");
    }
  }
  if (metadata.contains("ringlet.split")) info.split = reader.share("ringlet.split");
  if (metadata.contains("ringlet.broken")) {
    info.skip_broken = reader.text("ringlet.broken") == kLeftOut;
    if (!info.skip_broken) reader.fail("ringlet.broken", kLeftOut);
  }
  if (metadata.contains("ringlet.background")) {
    info.background = reader.number("ringlet.background");
  }
  return info;
}

void require_task(const fs::path& file, const std::string& task) {
  const SafetensorsStream stream(file);
  const Metadata& metadata = stream.header().metadata;
  const auto found = metadata.find(kTaskKey);
  if (found == metadata.end() || found->second == utf8(task)) return;
  constexpr std::size_t kShown = 60;
  throw FileError(
      fmt::format("{} was trained for the task '{}', not for '{}'; name a model of the "
                  "latter, or train from this one by --init with --replace-head",
                  file.string(), on_one_line(found->second, kShown), on_one_line(task, kShown)));
}

std::optional<ModelInfo> read_model_info(const fs::path& file) {
  return parse_model_info(file, SafetensorsFile(file).metadata());
}

}  // namespace ringlet::train
