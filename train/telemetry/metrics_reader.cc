#include "train/telemetry/metrics_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/files/atomic_file.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"

namespace ringlet::train {
namespace {

using nlohmann::json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kMaxWhole = std::numeric_limits<std::int64_t>::max();
constexpr int kLineDepth = 8;  // ours have one level

/// One line's JSON, asked for fields; errors name the file and the line.
class Line {
 public:
  Line(std::string location, json object)
      : location_(std::move(location)), object_(std::move(object)) {}

  std::string kind() const {
    const auto found = object_.find("kind");
    return found != object_.end() && found->is_string() ? found->get<std::string>() : "";
  }

  std::int64_t whole(const char* field) const {
    const auto found = object_.find(field);
    const bool fits = found != object_.end() && found->is_number_integer() &&
                      (!found->is_number_unsigned() || found->get<std::uint64_t>() <= kMaxWhole);
    if (!fits) fail(field, "a whole number");
    return found->get<std::int64_t>();
  }

  std::string text(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end() || !found->is_string()) fail(field, "a text");
    return found->get<std::string>();
  }

  /// NaN for null, which the writer puts for what is not finite.
  double number(const char* field) const {
    const std::optional<double> value = number_if_any(field);
    if (!value) fail(field, "a number");
    return *value;
  }

  /// Empty where there is none.
  std::vector<double> numbers(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end()) return {};
    std::vector<double> values;
    for (const json& value : *found) {
      if (!found->is_array() || !value.is_number()) fail(field, "a list of numbers");
      values.push_back(value.get<double>());
    }
    return values;
  }

  /// The figures of the test data that have no column of their own.
  std::map<std::string, double> test_figures() const {
    constexpr std::string_view kBegin = "test_";
    std::map<std::string, double> figures;
    for (const auto& [field, value] : object_.items()) {
      const bool is_one = field.starts_with(kBegin) && (value.is_number() || value.is_null());
      if (!is_one || field == "test_loss" || field == "test_accuracy") continue;
      figures[field.substr(kBegin.size())] = value.is_null() ? kNaN : value.get<double>();
    }
    return figures;
  }

  std::optional<double> number_if_any(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end()) return {};
    if (found->is_null()) return kNaN;
    if (!found->is_number()) fail(field, "a number");
    return found->get<double>();
  }

 private:
  [[noreturn]] void fail(const char* field, const char* wanted) const {
    const bool there = object_.contains(field);
    throw FileError(fmt::format("{}: '{}' {} {}; this is no line of Ringlet's metrics", location_,
                                field, there ? "is not" : "is missing; it should be", wanted));
  }

  std::string location_;
  json object_;
};

/// A line and whether it ended with a line feed.
struct RawLine {
  std::string text;
  bool whole = true;
};

class Reader {
 public:
  Reader(std::istream& stream, const std::string& source) : stream_(stream), source_(source) {}

  Metrics read() {
    while (const std::optional<RawLine> line = next()) {
      ++number_;
      if (line->text.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (!line->whole && !json::accept(line->text)) {
        metrics_.cut_off = true;
        break;
      }
      add(Line(location(), object_of(line->text)));
    }
    if (stream_.bad()) throw FileError(source_ + " cannot be read; check the disk");
    return std::move(metrics_);
  }

 private:
  std::string location() const { return fmt::format("{}: line {}", source_, number_); }

  /// Takes no more memory than a line may have, however long the file goes on without a line feed.
  std::optional<RawLine> next() {
    buffer_.resize(kLongestMetricsLine + 1);  // and a zero behind the line
    stream_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const auto got = static_cast<std::size_t>(stream_.gcount());
    if (got == 0) return {};
    if (stream_.fail()) {
      throw FileError(fmt::format("{}: line {} is longer than {} bytes; this is no file of metrics",
                                  source_, number_ + 1, kLongestMetricsLine));
    }
    const bool whole = !stream_.eof();  // then the line feed is counted and not stored
    return RawLine{std::string(buffer_.data(), whole ? got - 1 : got), whole};
  }

  json object_of(const std::string& text) const {
    json object = parse_json_text(location(), text, kLineDepth);
    if (!object.is_object())
      throw FileError(location() + " is not a JSON object; this is no file of metrics");
    return object;
  }

  void add(const Line& line) {
    const std::string kind = line.kind();
    if (kind == "step") add_step(line);
    if (kind == "epoch") add_epoch(line);
    if (kind == "verification") add_verification(line);
  }

  void add_verification(const Line& line) {
    const auto number = [&](const char* field) { return line.number_if_any(field).value_or(kNaN); };
    metrics_.verifications.push_back({line.whole("step"), line.text("set"), number("accuracy"),
                                      number("deviation"), number("xnorm")});
  }

  void add_step(const Line& line) {
    StepColumns& steps = metrics_.steps;
    add_if_any(line, "grad_norm", steps.grad_norm);
    add_if_any(line, "seconds", steps.seconds);
    steps.epoch.push_back(line.whole("epoch"));
    steps.step.push_back(line.whole("step"));
    steps.loss.push_back(line.number("loss"));
    steps.lr.push_back(line.number("lr"));
    steps.samples.push_back(line.whole("samples"));
  }

  /// Before the line's own columns have grown.
  void add_if_any(const Line& line, const char* field, std::vector<double>& column) const {
    const std::optional<double> value = line.number_if_any(field);
    if (value) column.resize(metrics_.steps.size(), kNaN);
    if (value || !column.empty()) column.push_back(value.value_or(kNaN));
  }

  void add_epoch(const Line& line) {
    const auto number = [&](const char* field) { return line.number_if_any(field).value_or(kNaN); };
    metrics_.epochs.push_back(
        {line.whole("epoch"),
         number("train_loss"),
         number("test_loss"),
         number("test_accuracy"),
         number("seconds"),
         number("samples_per_second"),
         number("sync_share"),
         {number("data_seconds"), number("forward_seconds"), number("backward_seconds"),
          number("sync_seconds"), number("update_seconds")},
         stages_of(line),
         line.test_figures()});
  }

  static std::optional<StagesReport> stages_of(const Line& line) {
    const std::optional<double> bubble = line.number_if_any("bubble");
    if (!bubble) return {};
    StagesReport report{.bubble = *bubble,
                        .predicted = line.number("predicted_bubble"),
                        .stage = static_cast<int>(line.whole("waiting_stage")),
                        .waited = line.number("waiting_share"),
                        .reason = line.text("waiting_for"),
                        .of_reason = line.number("waiting_for_share")};
    for (const StageField& field : kStageFields) {
      const std::vector<double> column = line.numbers(field.name);
      report.stages.resize(std::max(report.stages.size(), column.size()));
      for (std::size_t i = 0; i < column.size(); ++i) report.stages[i].*field.share = column[i];
    }
    return report;
  }

  std::istream& stream_;
  const std::string& source_;
  std::string buffer_;
  std::size_t number_ = 0;
  Metrics metrics_;
};

}  // namespace

Metrics read_metrics(const std::filesystem::path& file) {
  const std::string source = file.string();
  std::ifstream stream = open_input(file);
  return Reader(stream, source).read();
}

Metrics parse_metrics(std::string_view text, const std::string& source) {
  std::istringstream stream{std::string(text)};
  return Reader(stream, source).read();
}

}  // namespace ringlet::train
