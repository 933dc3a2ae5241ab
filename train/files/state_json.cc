#include "train/files/state_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/byte_sum.h"
#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/files/json_fields.h"
#include "base/files/json_text.h"
#include "train/files/recipe_json.h"

namespace ringlet::train {

namespace {

constexpr int kFormat = 1;
constexpr const char* kSums = "sums";
constexpr const char* kOwnName = "state.json";  // among the sums
constexpr int kMaxDepth = 8;                    // ours has two levels
constexpr std::size_t kShown = 100;             // bytes of what a message quotes
constexpr std::uintmax_t kMostBytes = 1 << 20;  // ours has less than one KiB

void require_format(const std::string& source, const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("format")) {
    throw FileError(source + " does not hold a state ('format' is missing); the file is damaged");
  }
  const nlohmann::json& format = json["format"];
  if (format.is_number_integer() && format == kFormat) return;
  throw FileError(fmt::format(
      "{} was written by another version of Ringlet (format {}, this one reads {}); resume with "
      "that version, or start anew from the weights with --init",
      source, on_one_line(format.dump(), kShown), kFormat));
}

/// Counts may not be negative, sums not be anything but numbers.
void require_possible(const std::string& source, const Progress& progress) {
  if (progress.step < 0) {
    throw FileError(fmt::format("{} names step {}, which no run reaches; the file is damaged",
                                source, progress.step));
  }
  if (progress.epoch_samples < 0) {
    throw FileError(fmt::format("{} counts {} samples, which no run sees; the file is damaged",
                                source, progress.epoch_samples));
  }
  if (progress.untested && progress.step == 0) {  // later, f16 may have skipped all of its steps
    throw FileError(source +
                    " names an epoch without samples that is still to be tested; the file is "
                    "damaged");
  }
}

LossScaleState read_loss_scale(const nlohmann::json& json) {
  LossScaleState state;
  read_field(json, "scale", state.scale);
  read_field(json, "good_steps", state.good_steps);
  read_field(json, "skips_in_row", state.skips_in_row);
  read_field(json, "skips", state.skips);
  return state;
}

nlohmann::json to_json(const EndedEpoch& epoch) {
  return {{"seconds", epoch.seconds},
          {"samples", epoch.samples},
          {"data_seconds", epoch.phases.data},
          {"forward_seconds", epoch.phases.forward},
          {"backward_seconds", epoch.phases.backward},
          {"sync_seconds", epoch.phases.sync},
          {"update_seconds", epoch.phases.update}};
}

EndedEpoch read_ended_epoch(const nlohmann::json& json) {
  EndedEpoch epoch;
  read_field(json, "seconds", epoch.seconds);
  read_field(json, "samples", epoch.samples);
  read_field(json, "data_seconds", epoch.phases.data);
  read_field(json, "forward_seconds", epoch.phases.forward);
  read_field(json, "backward_seconds", epoch.phases.backward);
  read_field(json, "sync_seconds", epoch.phases.sync);
  read_field(json, "update_seconds", epoch.phases.update);
  return epoch;
}

nlohmann::json to_json(const std::vector<BestVerification>& best) {
  nlohmann::json list = nlohmann::json::array();
  for (const BestVerification& of : best) {
    list.push_back({{"set", of.set}, {"accuracy", of.accuracy}, {"step", of.step}});
  }
  return list;
}

std::vector<BestVerification> read_best(const nlohmann::json& json) {
  if (!json.is_array()) throw std::runtime_error("'best' is no list");
  std::vector<BestVerification> best;
  for (const nlohmann::json& entry : json) {
    BestVerification& of = best.emplace_back();
    read_field(entry, "set", of.set);
    read_field(entry, "accuracy", of.accuracy);
    read_field(entry, "step", of.step);
  }
  return best;
}

nlohmann::json to_json(const BestTest& best) {
  return {{"by", best.by}, {"value", best.value}, {"step", best.step}, {"worse", best.worse}};
}

BestTest read_best_test(const nlohmann::json& json) {
  BestTest best;
  read_field(json, "by", best.by);
  read_field(json, "value", best.value);
  read_field(json, "step", best.step);
  read_field(json, "worse", best.worse);
  return best;
}

comm::StrategyTable read_strategies(const nlohmann::json& json) {
  int ranks = 0;
  std::string table;
  read_field(json, "ranks", ranks);
  read_field(json, "table", table);
  return comm::parse_table(table, ranks);
}

std::vector<FormerLength> read_lengths(const nlohmann::json& json) {
  if (!json.is_array()) throw std::runtime_error("'lengths' is no list");
  std::vector<FormerLength> lengths;
  for (const nlohmann::json& entry : json) {
    FormerLength& length = lengths.emplace_back();
    read_field(entry, "step", length.step);
    read_field(entry, "epochs", length.epochs);
  }
  return lengths;
}

void require_possible(const std::string& source, const BestTest& best) {
  const bool is_known = best.by == "accuracy" || best.by == "loss";
  if (is_known && best.step > 0 && best.worse >= 0) return;
  throw FileError(fmt::format(
      "{} has a best {} of step {}, {} epochs ago, which no run has; the file is damaged", source,
      on_one_line(best.by, kShown), best.step, best.worse));
}

void require_possible(const std::string& source, const BestVerification& best) {
  if (best.accuracy >= 0 && best.accuracy <= 1 && best.step >= 0) return;
  throw FileError(
      fmt::format("{} has an accuracy of {} after step {}, which no run has; the file is damaged",
                  source, best.accuracy, best.step));
}

/// The counts are f32 on the device, which has every whole number up to here.
void require_possible(const std::string& source, const LossScaleState& state) {
  constexpr std::int64_t kMost = 1 << 24;
  constexpr double kLargest = 0x1p127;
  int exponent = 0;
  const bool power = std::frexp(state.scale, &exponent) == 0.5;
  if (!power || state.scale < 1 || state.scale > kLargest) {
    throw FileError(fmt::format("{} has a loss scale of {}, which no run has; the file is damaged",
                                source, state.scale));
  }
  for (const std::int64_t count : {state.good_steps, state.skips_in_row, state.skips}) {
    if (0 <= count && count <= kMost) continue;
    throw FileError(
        fmt::format("{} counts {} steps for its loss scale, which no run has; the file is damaged",
                    source, count));
  }
}

/// Of all that state.json says but this. Blanks and the order of keys do not count.
std::string sum_of(nlohmann::json json) {
  json[kSums].erase(kOwnName);
  const std::string text = json.dump();
  ByteSum sum;
  sum.add(text.data(), text.size());
  return sum.finish();
}

/// Takes the sum of state.json itself out of `sums`. Throws FileError where it is another.
void check_own_sum(const std::string& source, const nlohmann::json& json, FileSums& sums) {
  const auto own = sums.extract(kOwnName);
  if (own && own.mapped() == sum_of(json)) return;
  throw FileError(
      source +
      " is not as it was written; the file is damaged (where it was changed on purpose, "
      "take its \"sums\" out)");
}

}  // namespace

std::string format_state_json(const StateJson& state) {
  nlohmann::json json = {{"format", kFormat},
                         {"step", state.progress.step},
                         {"epoch_loss", state.progress.epoch_loss},
                         {"epoch_samples", state.progress.epoch_samples},
                         {"data_hash", state.data_hash},
                         {"recipe", to_json(state.recipe)}};
  if (state.progress.epoch_told != Progress().epoch_told) {
    json["epoch_told"] = state.progress.epoch_told;
  }
  if (state.progress.untested) json["untested"] = to_json(*state.progress.untested);
  if (state.progress.earlier) json["earlier"] = to_json(*state.progress.earlier);
  if (const auto& strategies = state.progress.strategies; !strategies.empty()) {
    json["strategies"] = {{"ranks", strategies.front().ranks},
                          {"table", comm::format_table(strategies)}};
  }
  if (state.progress.unverified) json["unverified"] = true;
  if (!state.progress.best.empty()) json["best"] = to_json(state.progress.best);
  if (state.progress.best_test) json["best_test"] = to_json(*state.progress.best_test);
  if (state.progress.stopped) json["stopped"] = true;
  for (const FormerLength& length : state.progress.lengths) {
    json["lengths"].push_back({{"step", length.step}, {"epochs", length.epochs}});
  }
  if (state.loss_scale) {
    const LossScaleState& scale = *state.loss_scale;
    json["loss_scale"] = {{"scale", scale.scale},
                          {"good_steps", scale.good_steps},
                          {"skips_in_row", scale.skips_in_row},
                          {"skips", scale.skips}};
  }
  if (!state.sums.empty()) {
    json[kSums] = state.sums;
    json[kSums][kOwnName] = sum_of(json);
  }
  return json.dump(2) + "\n";
}

StateJson parse_state_json(const std::string& source, std::string_view text) {
  const nlohmann::json json = parse_json_text(source, text, kMaxDepth);
  require_format(source, json);
  StateJson state;
  try {
    read_field(json, "step", state.progress.step);
    read_field(json, "epoch_loss", state.progress.epoch_loss);
    read_field(json, "epoch_samples", state.progress.epoch_samples);
    read_field(json, "data_hash", state.data_hash);
    if (json.contains("epoch_told")) {
      state.progress.epoch_told = json["epoch_told"].get<std::array<double, 4>>();
    }
    if (json.contains("untested")) state.progress.untested = read_ended_epoch(json["untested"]);
    if (json.contains("earlier")) state.progress.earlier = read_ended_epoch(json["earlier"]);
    if (json.contains("strategies"))
      state.progress.strategies = read_strategies(json["strategies"]);
    if (json.contains("unverified")) read_field(json, "unverified", state.progress.unverified);
    if (json.contains("best")) state.progress.best = read_best(json["best"]);
    if (json.contains("best_test")) {
      state.progress.best_test = read_best_test(json["best_test"]);
    }
    if (json.contains("lengths")) state.progress.lengths = read_lengths(json["lengths"]);
    if (json.contains("stopped")) read_field(json, "stopped", state.progress.stopped);
    if (json.contains("loss_scale")) state.loss_scale = read_loss_scale(json["loss_scale"]);
    if (json.contains(kSums)) state.sums = json[kSums].get<FileSums>();
    if (!json.contains("recipe")) throw std::runtime_error("'recipe' is missing");
  } catch (const std::exception& error) {
    throw FileError(source + " does not hold a state (" + error.what() + "); the file is damaged");
  }
  require_possible(source, state.progress);
  for (const BestVerification& best : state.progress.best) require_possible(source, best);
  if (state.progress.best_test) require_possible(source, *state.progress.best_test);
  if (state.loss_scale) require_possible(source, *state.loss_scale);
  state.recipe = recipe_from_json(json["recipe"], source);
  if (json.contains(kSums)) check_own_sum(source, json, state.sums);
  return state;
}

StateJson read_state_json(const std::filesystem::path& file) {
  return parse_state_json(file.string(), read_text(file, kMostBytes));
}

FileSums sums_beside(const std::filesystem::path& file) {
  try {
    return read_state_json(file.parent_path() / "state.json").sums;
  } catch (const FileError&) {  // a model by itself, or beside a file of somebody else's
    return {};
  }
}

void require_sum(const FileSums& sums, const std::filesystem::path& file, const std::string& sum) {
  const auto saved = sums.find(file.filename().string());
  if (saved == sums.end() || saved->second == sum) return;
  throw FileError(fmt::format(
      "{} is not the file that was saved: its sum is {}, and that of its state is {}; it is "
      "damaged, or another state's",
      file.string(), sum, on_one_line(saved->second, kShown)));
}

}  // namespace ringlet::train
