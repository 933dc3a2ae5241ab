#include <fmt/format.h>

#include <cmath>

#include "app/report/sections.h"

namespace ringlet::app::report {

namespace {

using Sum = RunFacts::Sum;

std::string milliseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.3f}", 1e3 * seconds) : "";
}

/// Bytes of the data by the time of their all-reduce.
std::string bandwidth(const Sum& sum) {
  const double rate = sum.bytes / sum.taken_seconds;
  return std::isfinite(rate) ? fmt::format("{:.1f}", 1e-6 * rate) : "";
}

Html row(const Sum& sum) {
  const std::string kib =
      std::isfinite(sum.bytes) ? fmt::format("{:.1f}", sum.bytes / 1024) : std::string();
  return markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                sum.name, sum.strategy, kib, milliseconds(sum.predicted_seconds),
                milliseconds(sum.taken_seconds), bandwidth(sum));
}

Sum total(const std::vector<Sum>& sums) {
  Sum all{"a step", "", 0, 0, 0};
  for (const Sum& sum : sums) {
    all.bytes += sum.bytes;
    all.predicted_seconds += sum.predicted_seconds;
    all.taken_seconds += sum.taken_seconds;
  }
  return all;
}

/// What the table's columns are.
std::string note_of(const RunFacts& facts) {
  std::string note = "Sums of gradients";
  if (std::isfinite(facts.replicas)) note += fmt::format(" over {:.0f} replicas", facts.replicas);
  if (!facts.machines.empty()) note += ": " + facts.machines;
  note += ". Taken: the median, with the wait for the last replica.";
  if (facts.predicted_from == "tune") note += " Predicted by what ringlet tune measured.";
  if (facts.predicted_from == "model") note += " Predicted by the cost model.";
  if (!std::isfinite(facts.waited_seconds)) return note;
  return note + fmt::format(" Replica 0 waited {} ms a step.", milliseconds(facts.waited_seconds));
}

}  // namespace

Html sync_table(const RunFolder& run, const std::string& id) {
  if (!run.facts || run.facts->sums.empty()) return "";
  Html html = markup(
      "<h4>Synchronisation</h4>\n<p class=\"note\">{}</p>\n"
      "<div class=\"scroll\"><table id=\"{}\"><thead><tr><th>sum</th><th>by</th><th>KiB</th>"
      "<th>predicted, ms</th><th>taken, ms</th><th>MB/s</th></tr></thead><tbody>\n",
      note_of(*run.facts), id);
  for (const Sum& sum : run.facts->sums) html += row(sum);
  if (run.facts->sums.size() > 1) html += row(total(run.facts->sums));
  return html + "</tbody></table></div>\n";
}

}  // namespace ringlet::app::report
