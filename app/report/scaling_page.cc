#include "app/report/scaling_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/html.h"
#include "app/report/svg_plot.h"
#include "train/recipe/version.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

using bench::Estimate;
using bench::ScalingRow;

constexpr char kScalingStyle[] =
    ".facts { margin-bottom: 34px; } .scroll + .note, .scroll + .scroll { margin-top: 18px; }\n"
    "#rows tr.uncounted td { color: var(--soft); }\n"
    "#rows td.why { white-space: normal; min-width: 24ch; }\n";

constexpr char kScalingHow[] =
    "<p class=\"note\">All numbers of replicas were measured in rounds, in turns. Shown is the "
    "median of the rounds with its 95&nbsp;% interval. Speedup is the ratio of samples a second to "
    "those of the smallest number, efficiency what of it each replica keeps. Hollow points were "
    "disturbed by other work: they decide nothing.</p>\n"
    "<p class=\"note\">The prediction fits work that is shared out, what each replica does whole "
    "and what each further one adds, and goes on from the largest row. Its band holds every way "
    "to fit that these rows allow. It is of one more device like these.</p>\n";

constexpr char kPartsHow[] =
    "<p class=\"note\">Sums not hidden are what every replica waited for gradients; waiting is "
    "what they waited beyond that, for the slowest. Means over the replicas, of the rounds in the "
    "middle by time.</p>\n";

std::string rate_text(double rate) { return train::with_commas(std::llround(rate)); }

double at(int replicas) { return static_cast<double>(replicas); }

/// Of the rows that count, with their intervals where all have one; the others as rings.
std::vector<Series> series_of(const ScalingPage& page, Estimate ScalingRow::*figure) {
  Series counted{.name = "measured", .color = kBest, .look = Look::dotted_line};
  Series others{.color = kBest, .look = Look::hollow, .named = false};
  bool all = true;
  for (const ScalingRow& row : page.rows) {
    const Estimate& estimate = row.*figure;
    if (estimate.value == 0) continue;
    if (!row.counts()) {
      others.curve.add(at(row.replicas), estimate.value);
      continue;
    }
    counted.curve.add(at(row.replicas), estimate.value);
    counted.low.push_back(estimate.low);
    counted.high.push_back(estimate.high);
    all = all && estimate.has_interval();
  }
  if (!all) counted.low = counted.high = {};
  std::vector<Series> series{std::move(counted)};
  if (others.curve.size() > 0) series.push_back(std::move(others));
  return series;
}

/// From the row that the prediction goes on from to one replica more.
Series predicted(const bench::ScalingForecast& forecast, double from_value, const Estimate& next) {
  Series series{.name = "predicted", .color = kBaseline, .look = Look::dashed};
  series.curve.add(at(forecast.from), from_value);
  series.curve.add(at(forecast.from + 1), next.value);
  series.low = {from_value, next.low};
  series.high = {from_value, next.high};
  return series;
}

const ScalingRow* row_of(const ScalingPage& page, int replicas) {
  const auto found = std::find_if(page.rows.begin(), page.rows.end(),
                                  [&](const ScalingRow& row) { return row.replicas == replicas; });
  return found == page.rows.end() ? nullptr : &*found;
}

AxisSpec replicas_axis() { return {.title = "replicas", .whole = true}; }

Html rate_plot(const ScalingPage& page) {
  Plot plot{.id = "rate",
            .title = "Samples a second",
            .note = "band: 95 % interval",
            .x = replicas_axis(),
            .y = {.title = "samples/s", .round = true, .include_low = 0},
            .series = series_of(page, &ScalingRow::rate),
            .whole_bands = true};
  const ScalingRow& first = page.rows.front();
  Series ideal{.name = "ideal", .color = kGrey, .look = Look::dashed};
  for (const ScalingRow& row : page.rows) {
    ideal.curve.add(at(row.replicas), first.rate.value * row.replicas / first.replicas);
  }
  if (first.counts()) plot.series.push_back(std::move(ideal));
  const bench::ScalingForecast& forecast = page.forecast;
  const ScalingRow* from = row_of(page, forecast.from);
  if (from != nullptr && forecast.gain.value > 0) {
    const double rate = from->rate.value;
    plot.series.push_back(predicted(
        forecast, rate,
        {rate * forecast.gain.value, rate * forecast.gain.low, rate * forecast.gain.high}));
  }
  return figure_of(plot);
}

Html efficiency_plot(const ScalingPage& page) {
  const auto is_known = [](const ScalingRow& row) { return row.efficiency.value > 0; };
  if (std::ranges::none_of(page.rows, is_known)) return "";  // no row counts
  return figure_of(Plot{.id = "efficiency",
                        .title = "Efficiency",
                        .note = fmt::format("of {} replica{}", page.rows.front().replicas,
                                            page.rows.front().replicas == 1 ? "" : "s"),
                        .x = replicas_axis(),
                        .y = {.round = true, .include_low = 0, .include_high = 1, .percent = true},
                        .series = series_of(page, &ScalingRow::efficiency)});
}

Html parts_plot(const ScalingPage& page) {
  if (!page.rows.front().sees_parts()) return "";
  StackedBars bars{.id = "step",
                   .title = "A step",
                   .note = "means over the replicas",
                   .x_title = "replicas",
                   .y = {.title = "ms"}};
  for (const ScalingRow& row : page.rows) bars.labels.push_back(std::to_string(row.replicas));
  for (const bench::ScalingPart& part : bench::kScalingParts) {
    StackedBars::Part bar{part.name, static_cast<int>(bars.parts.size()), {}};
    for (const ScalingRow& row : page.rows) {
      bar.values.push_back(1e3 * std::max(0.0, row.parts.*part.seconds));
    }
    bars.parts.push_back(std::move(bar));
  }
  return figure_of(bars);
}

/// "1.91 (1.88 to 1.93)"; a dash where it is not known.
std::string estimate_words(const Estimate& estimate, double unit, int digits) {
  if (estimate.value == 0) return "\u2013";
  std::string text = with_decimals(estimate.value / unit, digits);
  if (estimate.low < estimate.high) {
    text += fmt::format(" ({} to {})", with_decimals(estimate.low / unit, digits),
                        with_decimals(estimate.high / unit, digits));
  }
  return text;
}

Html rows_table(const ScalingPage& page) {
  Html html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"rows\"><thead><tr><th>replicas</th>"
      "<th>batch</th><th>samples/s</th><th>95 % interval</th><th>speedup</th>"
      "<th>efficiency, %</th><th class=\"text\">counts</th></tr></thead><tbody>\n";
  for (const ScalingRow& row : page.rows) {
    html += row.counts() ? Html("<tr>") : Html("<tr class=\"uncounted\">");
    html += markup(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td class=\"text why\">{}</td></tr>\n",
        row.replicas, row.batch, rate_text(row.rate.value),
        row.rate.has_interval()
            ? fmt::format("{} to {}", rate_text(row.rate.low), rate_text(row.rate.high))
            : "\u2013",
        estimate_words(row.speedup, 1, 2), estimate_words(row.efficiency, 0.01, 1),
        row.counts() ? "yes" : "no: " + row.why_not);
  }
  return html + "</tbody></table></div>\n";
}

Html parts_table(const ScalingPage& page) {
  if (!page.rows.front().sees_parts()) return "";
  Html html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"parts\"><thead><tr>"
      "<th>replicas, ms a step</th>";
  for (const bench::ScalingPart& part : bench::kScalingParts) {
    html += markup("<th>{}</th>", part.name);
  }
  html += "<th>all</th></tr></thead><tbody>\n";
  for (const ScalingRow& row : page.rows) {
    html += markup("<tr><td>{}</td>", row.replicas);
    for (const bench::ScalingPart& part : bench::kScalingParts) {
      html += markup("<td>{:.3f}</td>", 1e3 * row.parts.*part.seconds);
    }
    html += markup("<td>{:.3f}</td></tr>\n", 1e3 * row.parts.step());
  }
  return html + "</tbody></table></div>\n";
}

/// What the parts are, and who came last: beside their plot.
Html parts_notes(const ScalingPage& page) {
  if (!page.rows.front().sees_parts()) return "";
  Html html = "<div>\n" + Html(kPartsHow);
  for (const std::string& line : page.spread) html += markup("<p class=\"note\">{}.</p>\n", line);
  return html + "</div>\n";
}

/// "on AMD EPYC, 2 cores, avx2"
std::string machine_text(const nlohmann::json& machine) {
  std::string text;
  for (const char* key : {"gpu", "processor", "cores", "instruction_set"}) {
    const auto found = machine.find(key);
    if (found == machine.end()) continue;
    const std::string word = found->is_string() ? found->get<std::string>() : found->dump();
    if (word.empty()) continue;
    text += text.empty() ? " On " : ", ";
    text += std::string(key) == "cores" ? word + (word == "1" ? " core" : " cores") : word;
  }
  return text.empty() ? "" : text + ".";
}

/// Of the largest number of replicas that counts.
Html facts_of(const ScalingPage& page) {
  const auto found = std::find_if(page.rows.rbegin(), page.rows.rend(),
                                  [](const ScalingRow& row) { return row.counts(); });
  if (found == page.rows.rend()) return "";
  const ScalingRow& last = *found;
  Html html = "<dl class=\"facts\">\n";
  html += fact(
      fmt::format("Samples a second, {} replica{}", last.replicas, last.replicas == 1 ? "" : "s"),
      escaped(rate_text(last.rate.value)));
  if (last.speedup.value > 0) {
    html += fact("Speedup", markup("{:.2f}", last.speedup.value));
    html += fact("Efficiency", markup("{:.1f} <small>%</small>", 100 * last.efficiency.value));
  }
  const bench::ScalingForecast& forecast = page.forecast;
  if (forecast.gain.value > 0) {
    html += fact(fmt::format("Predicted of {} over {}", forecast.from + 1, forecast.from),
                 markup("{:.2f} <small>times</small>", forecast.gain.value));
  }
  return html + "</dl>\n";
}

}  // namespace

std::string scaling_page(const ScalingPage& page) {
  std::string answer = answer_words(page.forecast);
  answer[0] = static_cast<char>(answer[0] - 'a' + 'A');  // words of the program's own
  const std::string limit = limit_words(page.forecast);
  Html body = markup(
      "<header>\n<p class=\"kicker\">ringlet bench train</p>\n"
      "<h1>Would another device pay here? {}</h1>\n<p class=\"lede\">{}.{}</p>\n",
      answer, page.settings, machine_text(page.machine));
  if (!limit.empty()) body += markup("<p class=\"lede\">What limits: {}.</p>\n", limit);
  const std::string busy = bench::not_counting(page.rows);
  if (!busy.empty()) {
    body += markup("<p class=\"warning\">{}. Such rows are hollow in the plots.</p>\n",
                   "T" + busy.substr(1));
  }
  for (const std::string& note : page.notes) body += markup("<p class=\"warning\">{}.</p>\n", note);
  body += facts_of(page) + "</header>\n<div class=\"grid\">\n" + rate_plot(page) +
          efficiency_plot(page) + parts_plot(page) + parts_notes(page) + "</div>\n";
  body += "<h2>Every number of replicas</h2>\n" + rows_table(page) + parts_table(page) +
          Html(kScalingHow);
  body += markup("<footer>Made by ringlet {} bench train.</footer>\n", train::kVersion);
  return page_of("Scaling of training (Ringlet)", body, {.style = kScalingStyle});
}

}  // namespace ringlet::app::report
