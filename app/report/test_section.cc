#include <fmt/format.h>

#include "app/report/axis.h"
#include "app/report/sections.h"
#include "app/report/test_results.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

/// 0.99873 as "99.9 %"; nothing as "0 %", and what rounds to nothing as "< 0.1 %".
std::string rounded_percent(double share) {
  if (share == 0) return "0\u00a0%";
  return share < 0.0005 ? "<\u00a00.1\u00a0%" : share_text(share, 1) + "\u00a0%";
}

const std::string& name_of(const TestResults& results, std::int64_t k) {
  return results.images->target_names()[static_cast<std::size_t>(k)];
}

/// The class that a class is taken for most often, or nothing if it never is.
std::string most_often_taken_for(const TestResults& results, std::int64_t label) {
  std::int64_t most = -1, times = 0;
  for (std::int64_t answer = 0; answer < results.classes(); ++answer) {
    if (answer == label || results.count(label, answer) <= times) continue;
    most = answer;
    times = results.count(label, answer);
  }
  return most < 0 ? "" : fmt::format("{} ({})", name_of(results, most), times);
}

Html class_table(const TestResults& results) {
  Html html =
      "<table class=\"wide\"><thead><tr><th>class</th><th>accuracy</th><th class=\"track\"></th>"
      "<th>most often taken for</th></tr></thead><tbody>\n";
  for (std::int64_t label = 0; label < results.classes(); ++label) {
    const std::int64_t samples = results.samples_of(label);
    const double share = samples == 0 ? 0
                                      : static_cast<double>(results.count(label, label)) /
                                            static_cast<double>(samples);
    html += markup(
        "<tr><td>{}</td><td>{}</td><td class=\"track\"><span class=\"bar\" style=\"width:{:.1f}%\">"
        "</span></td><td>{}</td></tr>\n",
        name_of(results, label), samples == 0 ? "\u2013" : rounded_percent(share), 100 * share,
        most_often_taken_for(results, label));
  }
  return html + "</tbody></table>\n";
}

Html picture_of(const TestResults& results, const Mistake& mistake) {
  const std::string& label = name_of(results, mistake.label);
  const std::string& answer = name_of(results, mistake.answer);
  return markup(
      "<figure><img src=\"{}\" width=\"{}\" height=\"{}\" alt=\"{}, taken for {}\"><figcaption>"
      "<span class=\"said\">{} {}</span><br><span class=\"is\">is {}, "
      "{}</span></figcaption></figure>\n",
      image_uri(*results.images, mistake.index), results.images->width(), results.images->height(),
      label, answer, answer, rounded_percent(mistake.answer_probability), label,
      rounded_percent(mistake.label_probability));
}

}  // namespace

Html test_section(const TestResults& results, const std::string& weights,
                  const std::string& suffix) {
  Html html =
      markup("<p class=\"note\">{} of {} test images are answered right{}{}.</p>\n",
             train::with_commas(results.right()), train::with_commas(results.images->size()),
             weights.empty() ? "" : " by ", weights);
  html += "<div class=\"side\">\n" + confusion_figure(results, "confusion" + suffix);
  html += "<div class=\"scroll\"><figcaption>Accuracy by class</figcaption>" +
          class_table(results) + "</div>\n</div>\n";
  if (results.worst.empty()) return html;
  html +=
      "<h3>Most wrong</h3>\n<p class=\"note\">The test images whose true class the model held for "
      "the least likely, with what it said instead.</p>\n";
  html += markup("<div class=\"mistakes\" id=\"mistakes{}\">\n", suffix);
  for (const Mistake& mistake : results.worst) html += picture_of(results, mistake);
  return html + "</div>\n";
}

}  // namespace ringlet::app::report
