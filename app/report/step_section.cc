#include "app/report/step_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/simulation/quantities.h"

namespace ringlet::app::report {

namespace {

/// The time of a step in two colours, of the longest one's.
Html bar_of(const bench::SimulatedStep& step, double longest) {
  const double computing = 100 * step.compute_s / longest, all = 100 * step.seconds / longest;
  return markup(
      "<span class=\"made\"><i class=\"part1\" style=\"width:{:.2f}%\"></i><i class=\"part2\" "
      "style=\"width:{:.2f}%\"></i></span>",
      computing, all - computing);
}

}  // namespace

Html step_section(const bench::StepSpec& spec, std::span<const bench::SimulatedStep> steps) {
  if (steps.empty()) return {};
  double longest = 0;
  for (const bench::SimulatedStep& step : steps) longest = std::max(longest, step.seconds);
  Html html = markup(
      "<h2>A training step</h2>\n<p class=\"note\">{}, {} samples over all ranks, for which one "
      "replica would compute {}. Each bucket is summed as soon as it is full, while backward goes "
      "on.</p>\n<ul class=\"legend\"><li><i class=\"part1\"></i>computing</li><li><i "
      "class=\"part2\"></i>sums that are not hidden</li></ul>\n"
      "<div class=\"scroll\"><table class=\"wide\" id=\"steps\"><thead><tr><th>strategy</th>"
      "<th>ranks</th><th>machines</th><th>buckets</th><th>step</th><th class=\"track\"></th>"
      "<th>sums alone</th><th>not overlapped</th><th>hidden</th><th>efficiency</th></tr></thead>"
      "<tbody>\n",
      spec.model, spec.batch_size, bench::seconds_text(spec.compute_s));
  for (const bench::SimulatedStep& step : steps) {
    html += markup("<tr><td>{}</td><td>{}</td><td>{}</td>", step.strategy, step.layout.ranks(),
                   step.layout.machines);
    if (!step.why_not.empty()) {
      html += markup("<td colspan=\"7\" class=\"why\">{}</td></tr>\n", step.why_not);
      continue;
    }
    html += markup(
        "<td>{}{}</td><td>{}</td><td class=\"track\">{}</td><td>{}</td><td>{}</td><td>{:.0f} "
        "%</td><td>{:.0f} %</td></tr>\n",
        step.buckets, step.bucket_kb < 0 ? "" : fmt::format(" of {} KiB", step.bucket_kb),
        bench::seconds_text(step.seconds), bar_of(step, longest), bench::seconds_text(step.sums_s),
        bench::seconds_text(step.unoverlapped), 100 * step.hidden(), 100 * step.efficiency);
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace ringlet::app::report
