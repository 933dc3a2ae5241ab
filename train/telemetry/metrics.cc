#include "train/telemetry/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/json_text.h"

namespace ringlet::train {

namespace {

constexpr const char* kVerification = "verification";

/// Where a line was written.
struct Position {
  std::int64_t step = 0;   // after which
  std::int64_t epoch = 0;  // of an epoch's line
};

/// None for a line that is not ours.
std::optional<Position> position_of(const std::string& line, std::int64_t steps_per_epoch) {
  const auto json = json_or_discarded(line);
  const auto number = [&json](const char* key) -> std::optional<std::int64_t> {
    if (!json.contains(key) || !json[key].is_number_integer()) return {};
    return json[key].get<std::int64_t>();
  };
  if (!json.is_object() || !json.contains("kind")) return {};
  if (json["kind"] == "step") {
    const auto step = number("step");
    return step ? std::optional(Position{*step, 0}) : std::nullopt;
  }
  if (json["kind"] == kVerification) {
    const auto step = number("step");
    return step && json.contains("set") ? std::optional(Position{*step, 0}) : std::nullopt;
  }
  const auto epoch = number("epoch");
  if (json["kind"] != "epoch" || !epoch) return {};
  return Position{*epoch * steps_per_epoch, *epoch};
}

/// Notes the set that a line of a verification is of.
void note_set(const std::string& line, std::set<std::string>& told) {
  const auto json = json_or_discarded(line);
  if (json["kind"] == kVerification && json["set"].is_string()) told.insert(json["set"]);
}

LineFile::Keep lines_until(std::int64_t first_step, std::int64_t steps_per_epoch,
                           std::int64_t& told_epoch, std::set<std::string>& told_sets) {
  if (first_step == 0) return {};
  return [=, &told_epoch, &told_sets](const std::string& line) {
    const auto position = position_of(line, steps_per_epoch);
    if (!position || position->step > first_step) return false;
    if (position->epoch > 0) told_epoch = position->epoch;
    if (position->step == first_step) note_set(line, told_sets);
    return true;
  };
}

/// {"name":value,...}: short ones are made in place, without an allocation.
class JsonLine {
 public:
  explicit JsonLine(const char* kind) { print(R"({{"kind":"{}")", kind); }
  JsonLine& field(const char* name, std::int64_t value) {
    print(R"(,"{}":{})", name, value);
    return *this;
  }
  /// JSON has no word for NaN and infinity.
  JsonLine& field(const char* name, double value) {
    if (std::isfinite(value)) {
      print(R"(,"{}":{})", name, value);
    } else {
      print(R"(,"{}":null)", name);
    }
    return *this;
  }
  JsonLine& field(const char* name, const std::string& text) {
    print(R"(,"{}":{})", name,
          nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return *this;
  }
  JsonLine& field(const char* name, const std::vector<double>& values) {
    print(R"(,"{}":[{}])", name, fmt::join(values, ","));
    return *this;
  }
  std::string_view end() {
    print("}}\n");
    return {text_.data(), text_.size()};
  }

 private:
  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }
  fmt::memory_buffer text_;
};

std::vector<double> column_of(const StagesReport& report, const StageField& field) {
  std::vector<double> column;
  for (const StageShares& stage : report.stages) column.push_back(stage.*field.share);
  return column;
}

}  // namespace

bool holds_metrics(const std::filesystem::path& file) {
  constexpr std::string_view kBegin = R"({"kind":")";
  std::string begin(kBegin.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), std::ssize(begin));
  return begin == kBegin || (stream.eof() && stream.gcount() == 0);
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path, std::int64_t first_step,
                             std::int64_t steps_per_epoch, const std::string& what)
    : file_(path, what + " " + path.string(),
            lines_until(first_step, steps_per_epoch, told_epoch_, told_sets_)),
      first_step_(first_step) {}

void MetricsWriter::step_done(const StepReport& report) {
  JsonLine line("step");
  line.field("epoch", report.epoch)
      .field("step", report.step)
      .field("loss", report.loss)
      .field("lr", report.lr)
      .field("samples", report.samples)
      .field("grad_norm", report.grad_norm)
      .field("seconds", report.seconds);
  if (report.loss_scale > 0) {
    line.field("loss_scale", report.loss_scale)
        .field("skipped", std::int64_t{report.skipped ? 1 : 0});
  }
  file_.append(line.end());
}

void MetricsWriter::epoch_done(const EpochReport& report) {
  if (report.epoch == told_epoch_) return;
  JsonLine line("epoch");
  line.field("epoch", report.epoch)
      .field("train_loss", report.train_loss)
      .field("test_loss", report.test.loss);
  if (report.test.figures.empty()) line.field("test_accuracy", report.test.accuracy());
  for (const Figure& figure : report.test.figures) {
    if (key_of(figure) == "loss") continue;  // stands there already
    line.field(("test_" + key_of(figure)).c_str(), figure.value);
  }
  line.field("seconds", report.seconds)
      .field("samples_per_second", report.samples_per_second)
      .field("sync_share", report.sync_share)
      .field("data_seconds", report.phases.data)
      .field("forward_seconds", report.phases.forward)
      .field("backward_seconds", report.phases.backward)
      .field("sync_seconds", report.phases.sync)
      .field("update_seconds", report.phases.update);
  for (const Figure& figure : report.told) {
    line.field(("train_" + key_of(figure)).c_str(), figure.value);
  }
  if (report.stages) {
    line.field("bubble", report.stages->bubble)
        .field("predicted_bubble", report.stages->predicted)
        .field("waiting_stage", std::int64_t{report.stages->stage})
        .field("waiting_share", report.stages->waited)
        .field("waiting_for", report.stages->reason)
        .field("waiting_for_share", report.stages->of_reason)
        .field("median_step_seconds", report.stages->step_seconds);
    if (report.stages->predicted_step_seconds > 0) {
      line.field("predicted_step_seconds", report.stages->predicted_step_seconds);
    }
    for (const StageField& field : kStageFields) {
      line.field(field.name, column_of(*report.stages, field));
    }
  }
  file_.append(line.end());
}

void MetricsWriter::verified(const VerificationReport& report) {
  for (std::size_t i = 0; i < report.sets.size(); ++i) {
    const Verified& set = report.sets[i];
    if (report.step == first_step_ && told_sets_.contains(set.name)) continue;
    JsonLine line(kVerification);
    line.field("epoch", report.epoch)
        .field("step", report.step)
        .field("set", set.name)
        .field("pairs", set.figures.pairs)
        .field("xnorm", set.mean_length)
        .field("accuracy", set.figures.grid.mean)
        .field("deviation", set.figures.grid.deviation)
        .field("accuracy_exact", set.figures.exact.mean)
        .field("highest", report.best[i].accuracy)
        .field("seconds", report.seconds);
    file_.append(line.end());
  }
}

}  // namespace ringlet::train
