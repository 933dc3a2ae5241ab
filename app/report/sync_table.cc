#include <fmt/format.h>

#include <cmath>

#include "app/report/sections.h"

namespace ringlet::app::report {

namespace {

using Sum = RunFacts::Sum;

std::string in_milliseconds(double seconds) {
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
                sum.name, sum.strategy, kib, in_milliseconds(sum.predicted_seconds),
                in_milliseconds(sum.taken_seconds), bandwidth(sum));
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
  const double replicas = facts.replicas(), waited = facts.number("/sync/waited_seconds");
  if (std::isfinite(replicas)) note += fmt::format(" over {:.0f} replicas", replicas);
  const std::string machines = facts.text("/run/machines");
  if (!machines.empty()) note += ": " + machines;
  note += ". Taken: the median, with the wait for the last replica.";
  const std::string predicted_from = facts.text("/sync/predicted_from");
  if (predicted_from == "tune") note += " Predicted by what ringlet tune measured.";
  if (predicted_from == "model") note += " Predicted by the cost model.";
  if (!std::isfinite(waited)) return note;
  return note + fmt::format(" Replica 0 waited {} ms a step.", in_milliseconds(waited));
}

}  // namespace

Html sync_table(const RunFolder& run, const std::string& id) {
  const std::vector<Sum> sums = run.facts ? run.facts->sums() : std::vector<Sum>();
  if (sums.empty()) return "";
  Html html = markup(
      "<h4>Synchronisation</h4>\n<p class=\"note\">{}</p>\n"
      "<div class=\"scroll\"><table id=\"{}\"><thead><tr><th>sum</th><th>by</th><th>KiB</th>"
      "<th>predicted, ms</th><th>taken, ms</th><th>MB/s</th></tr></thead><tbody>\n",
      note_of(*run.facts), id);
  for (const Sum& sum : sums) html += row(sum);
  if (sums.size() > 1) html += row(total(sums));
  return html + "</tbody></table></div>\n";
}

}  // namespace ringlet::app::report
