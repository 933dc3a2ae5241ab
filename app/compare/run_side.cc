// The side of a run's folder. The figures are those of its epochs, one part each. An epoch that is
// the first of three and more warms up, and is left out. So is one that has fewer steps than
// others, as --max-steps or Ctrl-C ended it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "app/compare/side.h"
#include "app/report/axis.h"
#include "app/report/run_folder.h"
#include "base/files/file_error.h"
#include "base/one_line.h"

namespace ringlet::app::compare {

namespace {

using report::RunFolder;
using train::EpochMetrics;

constexpr std::size_t kEpochsWithWarmUp = 3;
constexpr std::size_t kLongestName = 80;

/// The last epoch's, or a dash.
Shown last_of(const RunFolder& run, const char* name, double EpochMetrics::*field, bool percent) {
  const double value = run.metrics.epochs.back().*field;
  return {name, !std::isfinite(value) ? "-"
                : percent             ? fmt::format("{:.2f} %", 100 * value)
                                      : fmt::format("{:.4g}", value)};
}

/// Without those in which a run learnt nothing, since all of it had been learnt before: it was
/// resumed for their test alone. And without those that were not finished.
std::vector<EpochMetrics> learnt_epochs(const RunFolder& run) {
  const train::StepColumns& written = run.metrics.steps;
  std::map<std::int64_t, std::set<std::int64_t>> steps;  // of each epoch
  for (std::size_t i = 0; i < written.size(); ++i) steps[written.epoch[i]].insert(written.step[i]);
  std::vector<EpochMetrics> epochs = run.metrics.epochs;
  std::erase_if(epochs, [](const EpochMetrics& epoch) { return epoch.samples_per_second == 0; });
  std::size_t most = 0;
  for (const EpochMetrics& epoch : epochs) most = std::max(most, steps[epoch.epoch].size());
  std::erase_if(epochs, [&](const EpochMetrics& epoch) {
    const std::size_t known = steps[epoch.epoch].size();
    return known > 0 && known < most;
  });
  if (epochs.empty()) {
    throw FileError((run.path / "metrics.jsonl").string() +
                    " has no epoch in which the run learnt; compare runs that have one");
  }
  return epochs;
}

Row row_of_epochs(const RunFolder& run, const char* name, double EpochMetrics::*field,
                  bool is_rate) {
  const std::vector<EpochMetrics> learnt = learnt_epochs(run);
  std::span<const EpochMetrics> epochs = learnt;
  if (epochs.size() >= kEpochsWithWarmUp) epochs = epochs.subspan(1);
  std::vector<double> parts;
  double sum = 0;
  for (const EpochMetrics& epoch : epochs) {
    const double value = epoch.*field;
    if (!(value > 0)) {
      throw FileError(
          fmt::format("{}: epoch {}: '{}' is not above 0; it should be what a run writes",
                      (run.path / "metrics.jsonl").string(), epoch.epoch,
                      is_rate ? "samples_per_second" : "seconds"));
    }
    // Of a rate the mean over all of the time: epochs are about equally long in samples.
    sum += is_rate ? 1 / value : value;
    parts.push_back(value);
  }
  const double mean = sum / static_cast<double>(parts.size());
  return {.name = name, .is_rate = is_rate, .figure = figure_of(is_rate ? 1 / mean : mean, parts)};
}

Line line_of(const RunFolder& run, const char* id, const char* title, double EpochMetrics::*field,
             bool percent = false) {
  Line line{.id = id, .title = title, .over = "epoch", .percent = percent};
  for (const EpochMetrics& epoch : run.metrics.epochs) {
    line.curve.add(static_cast<double>(epoch.epoch), epoch.*field);
  }
  return line;
}

std::string with(const char* preposition, const std::string& words) {
  return words.empty() ? "" : fmt::format("{} {}", preposition, on_one_line(words, kLongestName));
}

/// "2", or "" for none.
std::string whole(double number) {
  return std::isfinite(number) ? fmt::format("{:.0f}", number) : "";
}

std::vector<Trait> run_traits(const RunFolder& run) {
  const report::RunFacts facts = run.facts.value_or(report::RunFacts());
  const std::string replicas = whole(facts.replicas());
  const std::string precision = facts.text("/run/precision");
  const std::string batch = whole(facts.batch()), data = facts.text("/data/name");
  const std::string name = facts.text("/model/name"), sync = facts.text("/run/sync");
  return {{"machines",
           machine_words(facts.text("/machine/cpu/name"), whole(facts.number("/machine/cpu/cores")),
                         facts.text("/machine/cpu/instruction_set"), facts.gpus())},
          {"builds", build_words(facts.text("/build/commit"), facts.text("/build/compiler"),
                                 facts.text("/build/build_type"))},
          {"versions", with("by ringlet", facts.ringlet())},
          {"ranks", replicas.empty() ? "" : fmt::format("with {} replicas", replicas)},
          {"types", precision.empty()
                        ? ""
                        : with("with", fmt::format("precision {}, gradients {}", precision,
                                                   facts.text("/run/grad_dtype")))},
          {"models",
           name.empty() ? "" : with("of", fmt::format("{} on {}, batch {}", name, data, batch))},
          {"settings", sync.empty() ? ""
                                    : with("with", fmt::format("sync {}, layout {}", sync,
                                                               facts.text("/run/layout")))}};
}

}  // namespace

Side run_side(const std::filesystem::path& folder) {
  const RunFolder run = report::read_run(folder);
  if (run.metrics.epochs.empty()) {
    throw FileError((folder / "metrics.jsonl").string() +
                    " has no whole epoch yet; compare runs that have one");
  }
  return {
      .file = folder.string(),
      .kind = Kind::run,
      .traits = run_traits(run),
      .rows = {row_of_epochs(run, "seconds an epoch", &EpochMetrics::seconds, false),
               row_of_epochs(run, "samples/s", &EpochMetrics::samples_per_second, true)},
      .shown = {last_of(run, "last test accuracy", &EpochMetrics::test_accuracy, true),
                last_of(run, "last test loss", &EpochMetrics::test_loss, false)},
      .lines = {line_of(run, "speed", "Samples a second", &EpochMetrics::samples_per_second),
                line_of(run, "test-accuracy", "Test accuracy", &EpochMetrics::test_accuracy, true),
                line_of(run, "test-loss", "Test loss", &EpochMetrics::test_loss)}};
}

}  // namespace ringlet::app::compare
