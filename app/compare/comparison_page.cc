#include "app/compare/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "app/report/html.h"
#include "app/report/svg_plot.h"
#include "bench/all_reduce/comparison.h"
#include "train/recipe/version.h"

namespace ringlet::app::compare {

namespace {

using report::Html;
using report::markup;
using report::Plot;
using report::Series;

constexpr std::size_t kMostPlots = 64;  // more are a file that is made to harm
constexpr std::size_t kMostBands = 2;   // of ratios, on top of each other
constexpr int kColorA = report::kBaseline, kColorB = report::kBest;

constexpr char kStyle[] =
    "td.worse { color: var(--bad); font-weight: 600; }\n"
    "td.better { color: color-mix(in srgb, var(--c2) 70%, var(--ink)); }\n"
    "#rows small { color: var(--soft); } tr.uncounted td { color: var(--soft); }\n";
constexpr char kHollow[] = "; rings: do not count";

constexpr char kHow[] =
    "<p class=\"note\">The ratio is B&rsquo;s time over A&rsquo;s: above 1 B is slower, and worse. "
    "Its interval comes from those of both figures, each of 95 % or more, whose distances add as "
    "squares on logarithms. Where it holds 1, the row is equal. Each row is judged by itself: of a "
    "hundred that are equal, some five come out better or worse by chance, and some one of those "
    "with 11 rounds.</p>\n";

/// Pairs that follow each other and agree in what `key` gives.
using Run = std::pair<std::size_t, std::size_t>;  // begin and end
template <class KeyOf>
std::vector<Run> runs_of(const std::vector<Pair>& pairs, Run within, KeyOf key) {
  std::vector<Run> runs;
  for (std::size_t i = within.first; i < within.second; ++i) {
    const bool goes_on = i > within.first && key(pairs[i]) == key(pairs[i - 1]);
    if (!goes_on) runs.emplace_back(i, i);
    runs.back().second = i + 1;
  }
  return runs;
}

const std::string& group_in(const Pair& pair) { return pair.a.group; }
const std::string& name_in(const Pair& pair) { return pair.a.name; }

report::AxisSpec bytes_axis() {
  return {.title = "bytes on each rank", .log = true, .binary = true, .label = bench::rough_size};
}

/// A figure of pairs over their sizes.
struct SizeLine {
  std::string name;
  int color = 0;
  bool has_band = true;
};

/// Adds the pairs' figures, with intervals where all have one. Those that do not count are rings
/// beside the line.
template <class FigureOf, class Counts>
void add_line(Plot& plot, const SizeLine& line, std::span<const Pair> pairs, FigureOf figure_of,
              Counts counts) {
  Series series{.name = line.name, .color = line.color, .look = report::Look::dotted_line};
  Series rings{.color = line.color, .look = report::Look::hollow, .named = false};
  bool all = line.has_band;
  for (const Pair& pair : pairs) {
    const Figure& figure = figure_of(pair);
    const auto bytes = static_cast<double>(pair.a.bytes);
    if (!counts(pair)) {
      rings.curve.add(bytes, figure.value);
      continue;
    }
    series.curve.add(bytes, figure.value);
    series.low.push_back(figure.low);
    series.high.push_back(figure.high);
    all = all && figure.has_interval();
  }
  if (!all) series.low = series.high = {};
  plot.series.push_back(std::move(series));
  if (rings.curve.size() == 0) return;
  plot.series.push_back(std::move(rings));
  if (!plot.note.ends_with(kHollow)) plot.note += kHollow;
}

std::span<const Pair> within(const Comparison& comparison, Run run) {
  return std::span(comparison.pairs).subspan(run.first, run.second - run.first);
}

Plot time_plot(const Comparison& comparison, Run run, const std::string& id) {
  Plot plot{.id = id,
            .title = comparison.pairs[run.first].a.name,
            .note = "median; band: its interval",
            .x = bytes_axis(),
            .y = {.title = "µs", .log = true}};
  for (Row Pair::*side : {&Pair::a, &Pair::b}) {
    const bool is_b = side == &Pair::b;
    add_line(
        plot, {comparison.names[is_b ? 1 : 0], is_b ? kColorB : kColorA}, within(comparison, run),
        [&](const Pair& pair) -> const Figure& { return (pair.*side).figure; },
        [&](const Pair& pair) { return (pair.*side).why_not.empty(); });
  }
  return plot;
}

Plot ratio_plot(const Comparison& comparison, const std::vector<Run>& names,
                const std::string& id) {
  const bool has_bands = names.size() <= kMostBands;
  Plot plot{.id = id,
            .title = "B / A",
            .note = has_bands ? "above 1 B is slower; band: the interval" : "above 1 B is slower",
            .x = bytes_axis(),
            .y = {.title = "ratio of times", .round = true, .include_low = 1, .include_high = 1},
            .whole_bands = true};
  int color = 0;
  for (const Run& run : names) {
    add_line(
        plot, {name_in(comparison.pairs[run.first]), color++ % report::kColors, has_bands},
        within(comparison, run), [](const Pair& pair) -> const Figure& { return pair.ratio; },
        [](const Pair& pair) { return pair.counts(); });
  }
  return plot;
}

/// Of all-reduces: their rows have sizes.
Html plots_by_size(const Comparison& comparison) {
  const std::vector<Pair>& pairs = comparison.pairs;
  Html html;
  std::size_t drawn = 0, number = 0;
  for (const Run& group : runs_of(pairs, {0, pairs.size()}, group_in)) {
    if (drawn >= kMostPlots) break;
    const std::vector<Run> names = runs_of(pairs, group, name_in);
    html += markup("<h2>{}</h2>\n<div class=\"grid\">\n", group_in(pairs[group.first]));
    html += figure_of(ratio_plot(comparison, names, fmt::format("ratio-{}", ++number)));
    for (std::size_t i = 0; i < names.size() && drawn < kMostPlots; ++i, ++drawn) {
      html += figure_of(time_plot(comparison, names[i], fmt::format("time-{}-{}", number, i + 1)));
    }
    html += "</div>\n";
  }
  return html;
}

/// Of rounds or epochs.
Html plots_of_lines(const Comparison& comparison) {
  Html html;
  for (const Line& a : comparison.a.lines) {
    const auto b = std::find_if(comparison.b.lines.begin(), comparison.b.lines.end(),
                                [&](const Line& one) { return std::string(one.id) == a.id; });
    if (b == comparison.b.lines.end()) continue;
    html += figure_of(Plot{.id = a.id,
                           .title = a.title,
                           .note = fmt::format("by {}", a.over),
                           .x = {.title = a.over, .whole = true},
                           .y = {.round = true, .percent = a.percent},
                           .series = {{.name = comparison.names[0],
                                       .curve = a.curve,
                                       .color = kColorA,
                                       .look = report::Look::dotted_line},
                                      {.name = comparison.names[1],
                                       .curve = b->curve,
                                       .color = kColorB,
                                       .look = report::Look::dotted_line}}});
  }
  return html.empty() ? html : "<div class=\"grid\">\n" + html + "</div>\n";
}

Html figure_html(const Figure& figure) {
  return markup("{} <small>{}</small>", text_of_number(figure.value), text_of_spread(figure));
}

Html row_html(const Pair& pair) {
  const char* style = "";
  if (pair.counts() && pair.ratio.has_interval()) {
    const Verdict verdict = verdict_of(pair.ratio);
    style = verdict == Verdict::worse ? "worse" : verdict == Verdict::better ? "better" : "";
  }
  std::string why;
  for (const Row* row : {&pair.a, &pair.b}) {
    if (row->why_not.empty()) continue;
    why +=
        fmt::format("{}{}: {}", why.empty() ? "" : "; ", row == &pair.a ? "A" : "B", row->why_not);
  }
  return markup(
      "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td class=\"text {}\">{}</td><td class=\"text why\">{}</td></tr>\n",
      pair.counts() ? Html() : Html(" class=\"uncounted\""), pair.a.name,
      pair.a.bytes > 0 ? bench::rough_size(static_cast<double>(pair.a.bytes)) : "",
      figure_html(pair.a.figure), figure_html(pair.b.figure), text_of_ratio({pair.ratio.value}),
      pair.ratio.has_interval() ? interval_words(pair.ratio) : "\u2013", style, verdict_words(pair),
      why);
}

Html rows_table(const Comparison& comparison) {
  const std::vector<Pair>& pairs = comparison.pairs;
  const char* unit = comparison.a.kind == Kind::all_reduce ? ", µs" : "";
  Html html = markup(
      "<div class=\"scroll\"><table class=\"wide\" id=\"rows\"><thead><tr><th></th><th>size</th>"
      "<th>A{}</th><th>B{}</th><th>ratio</th><th>95 % interval</th><th class=\"text\">B is</th>"
      "<th></th></tr></thead><tbody>\n",
      unit, unit);
  for (const Run& group : runs_of(pairs, {0, pairs.size()}, group_in)) {
    const std::string& name = group_in(pairs[group.first]);
    if (!name.empty()) html += markup("<tr><td colspan=\"8\"><b>{}</b></td></tr>\n", name);
    for (std::size_t i = group.first; i < group.second; ++i) html += row_html(pairs[i]);
  }
  return html + "</tbody></table></div>\n";
}

Html shown_html(const Comparison& comparison) {
  if (comparison.a.shown.empty()) return "";
  Html html =
      "<h2>Not judged</h2>\n<div class=\"scroll\"><table id=\"shown\"><thead><tr><th></th>"
      "<th>A</th><th>B</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < comparison.a.shown.size(); ++i) {
    html += markup("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", comparison.a.shown[i].name,
                   comparison.a.shown[i].text, comparison.b.shown[i].text);
  }
  return html +
         "</tbody></table></div>\n<p class=\"note\">One run each: what another seed would give is "
         "not known.</p>\n";
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  Html body = markup(
      "<header>\n<p class=\"kicker\">ringlet compare</p>\n<h1>{}</h1>\n"
      "<p class=\"lede\">{}. A is {}, B is {}.</p>\n",
      answer_of(comparison), others_of(comparison), comparison.a.file, comparison.b.file);
  for (const std::string& warning : warnings_of(comparison)) {
    body += markup("<p class=\"warning\">{}.</p>\n", warning);
  }
  body += "</header>\n";
  body += comparison.a.kind == Kind::all_reduce ? plots_by_size(comparison)
                                                : plots_of_lines(comparison);
  body += "<h2>Every row</h2>\n" + Html(kHow) + rows_table(comparison) + shown_html(comparison);
  for (const std::string& note : notes_of(comparison)) {
    body += markup("<p class=\"note\">{}.</p>\n", note);
  }
  body += markup("<footer>Made by ringlet {} compare.</footer>\n", train::kVersion);
  return report::page_of(
      fmt::format("{} against {} (Ringlet)", comparison.names[1], comparison.names[0]), body,
      {.style = kStyle});
}

}  // namespace ringlet::app::compare
