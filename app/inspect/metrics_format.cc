// Metrics in JSON lines: how a run went.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/inspect/format.h"
#include "base/files/json_text.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::app::inspect {
namespace {

/// The columns of the steps, summarised.
struct Course {
  std::int64_t nans = 0, missing = 0, repeated = 0;
  double least = std::numeric_limits<double>::quiet_NaN();
  std::int64_t least_at = 0;

  explicit Course(const train::StepColumns& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double loss = steps.loss[i];
      nans += std::isfinite(loss) ? 0 : 1;
      if (std::isfinite(loss) && !(loss >= least)) {
        least = loss;
        least_at = steps.step[i];
      }
      if (i == 0) continue;
      const std::int64_t ahead = steps.step[i] - steps.step[i - 1];
      missing += std::max<std::int64_t>(0, ahead - 1);
      repeated += ahead <= 0 ? 1 : 0;
    }
  }
};

Value number(double value) { return std::isfinite(value) ? Value(value) : Value(); }

void add_steps(Document& document, const train::StepColumns& steps) {
  document.facts.push_back({"steps", static_cast<std::int64_t>(steps.size())});
  if (steps.size() == 0) return;
  const Course course(steps);
  const auto add = [&](const char* name, const Value& value) {
    document.facts.push_back({name, value});
  };
  add("first step", steps.step.front());
  add("last step", steps.step.back());
  add("first loss", number(steps.loss.front()));
  add("last loss", number(steps.loss.back()));
  add("least loss", number(course.least));
  add("least loss at step", course.least_at);
  add("missing steps", course.missing);
  add("NaN losses", course.nans);
  const auto warn = [&](std::int64_t count, const char* what) {
    if (count > 0) document.warnings.push_back(std::to_string(count) + what);
  };
  warn(course.missing, " steps are missing between the first and the last");
  warn(course.repeated, " steps do not come after the one before them; are these several runs?");
  warn(course.nans, " losses are NaN or infinite");
}

void add_epochs(Document& document, const std::vector<train::EpochMetrics>& epochs) {
  document.facts.push_back({"epochs", static_cast<std::int64_t>(epochs.size())});
  if (epochs.empty()) return;
  // NaN compares as smaller than everything here.
  const auto best = std::max_element(
      epochs.begin(), epochs.end(), [](const train::EpochMetrics& a, const train::EpochMetrics& b) {
        return !(a.test_accuracy >= b.test_accuracy) && !std::isnan(b.test_accuracy);
      });
  document.facts.push_back({"best accuracy", {best->test_accuracy, Form::share}});
  document.facts.push_back({"best accuracy in epoch", best->epoch});
  Table table{"epoch list",
              {"epoch", "train loss", "test loss", "test accuracy", "seconds", "samples/s"},
              {}};
  for (const train::EpochMetrics& epoch : epochs) {
    table.rows.push_back({epoch.epoch,
                          number(epoch.train_loss),
                          number(epoch.test_loss),
                          {epoch.test_accuracy, Form::share},
                          number(epoch.seconds),
                          number(epoch.samples_per_second)});
  }
  document.tables.push_back(std::move(table));
}

/// Its first line is a JSON object with a "kind". An empty file is not known as anything.
bool recognises_metrics(const Subject& subject) {
  if (subject.is_folder || subject.gzipped || !subject.head.starts_with('{')) return false;
  const std::string line = subject.head.substr(0, subject.head.find('\n'));
  if (json_depth(line) > 8) return false;
  const auto json = json_or_discarded(line);
  return json.is_object() && json.contains("kind");
}

Document describe_metrics(const Subject& subject, const Wishes&) {
  const train::Metrics metrics = train::read_metrics(subject.path);
  Document document{subject.path.string(), "metrics", {}, {}};
  document.facts.push_back({"stored", bytes_value(subject.stored)});
  add_steps(document, metrics.steps);
  add_epochs(document, metrics.epochs);
  if (metrics.cut_off) {
    document.warnings.push_back("the last line breaks off, as when a run is killed");
  }
  return document;
}

}  // namespace

const Format kMetrics{recognises_metrics, describe_metrics};

}  // namespace ringlet::app::inspect
