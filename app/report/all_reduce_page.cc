#include "app/report/all_reduce_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "app/report/axis.h"
#include "app/report/html.h"
#include "base/one_line.h"
#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/machine.h"
#include "bench/all_reduce/measure.h"
#include "bench/all_reduce/sizes.h"
#include "train/recipe/version.h"

namespace ringlet::app::report {

namespace {

using nlohmann::json;

constexpr char kHow[] =
    "<p class=\"note\">Each rank rewrites its input, all ranks meet, and a rank&rsquo;s time runs "
    "until it has read its whole result; a call takes as long as its slowest rank. Shown is the "
    "median of the calls. algbw is bytes / time, busbw algbw {}, in 1e9 bytes a second. Results "
    "were compared with the exact ones to the last bit: of each call up to 4 MiB, of the first and "
    "the last of a size beyond.</p>\n";

constexpr char kModel[] =
    "<p class=\"note\">time = steps &times; latency + bytes &times; seconds per byte, with the "
    "steps and bytes on each strategy&rsquo;s longest path; the two numbers are fitted to the "
    "points so that small sizes count as much as large ones. They stand above each plot: dots are "
    "measured, the dashed line is the model. Points far from it are what two numbers cannot tell: "
    "caches, above all. Hollow points were disturbed by other work; no model is fitted to "
    "them.</p>\n";

using Rows = std::vector<bench::Measurement>;

/// The collectives that were measured, without repetition.
std::vector<const bench::Collective*> collectives_of(const Rows& rows) {
  std::vector<const bench::Collective*> all;
  for (const bench::Measurement& row : rows) {
    const bench::Collective* const collective = bench::find_collective(row.collective);
    if (std::find(all.begin(), all.end(), collective) == all.end()) all.push_back(collective);
  }
  return all;
}

/// "bench all-reduce", or "bench" where there are several.
std::string command_of(const Rows& rows) {
  const auto all = collectives_of(rows);
  return all.size() == 1 ? fmt::format("bench {}", all.front()->name) : "bench";
}

/// "All-reduce", or "Collectives" where there are several.
std::string title_of(const Rows& rows) {
  const auto all = collectives_of(rows);
  std::string title = all.size() == 1 ? all.front()->name : "collectives";
  title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  return title;
}

Html how_of(const Rows& rows) {
  const auto all = collectives_of(rows);
  std::vector<std::string> factors;
  for (const bench::Collective* collective : all) {
    const char* const factor = collective->bus_passes == 0   ? "1"
                               : collective->bus_passes == 1 ? "(p-1)/p"
                                                             : "2 (p-1)/p";
    factors.push_back(fmt::format("× {}{}", factor,
                                  all.size() == 1 ? "" : fmt::format(" of {}", collective->name)));
  }
  return markup(kHow, fmt::format("{} for p ranks", fmt::join(factors, ", ")));
}

Html with_unit(const std::string& value, const char* unit) {
  return markup("{} <small>{}</small>", value, unit);
}

/// "25 ns (near)" for each time that it was measured.
std::vector<std::string> distances_of(const json& machine) {
  std::vector<std::string> distances;
  if (!machine.contains("core_distances")) return distances;
  for (const json& distance : machine.at("core_distances")) {
    const auto ns = distance.find("nanoseconds"), word = distance.find("word");
    if (ns == distance.end() || !ns->is_number() || word == distance.end() || !word->is_string()) {
      continue;
    }
    distances.push_back(
        fmt::format("{} ns ({})", with_decimals(ns->get<double>(), 0), word->get<std::string>()));
  }
  return distances;
}

/// The quickest call and the widest one of all rows.
Html facts_of(const std::vector<bench::Comparison>& comparisons, const json& machine) {
  const bench::Series* quick = nullptr;
  const bench::Measurement *quickest = nullptr, *widest = nullptr;
  const bench::Series* wide = nullptr;
  for (const bench::Comparison& comparison : comparisons) {
    for (const bench::Series& series : comparison.series) {
      if (series.picks()) continue;
      for (const bench::Measurement& m : series.rows) {
        if (!m.decides()) continue;
        if (quickest == nullptr || m.median_us < quickest->median_us) {
          quickest = &m;
          quick = &series;
        }
        if (widest == nullptr || m.busbw_gbs() > widest->busbw_gbs()) {
          widest = &m;
          wide = &series;
        }
      }
    }
  }
  const auto who = [](const bench::Series& series, const bench::Measurement& m) {
    const bool is_only = m.strategy == bench::kOnlyStrategy;
    const std::string size = bench::size_text(m.bytes);
    const char* unit = std::isdigit(static_cast<unsigned char>(size.back())) != 0 ? " bytes" : "";
    return fmt::format("{}, {}{}, {} ranks{}", is_only ? m.collective : series.label, size, unit,
                       m.ranks, bench::where_text(m.machine));
  };
  Html html = "<dl class=\"facts\">\n";
  if (quickest != nullptr) {
    html += fact("Quickest: " + who(*quick, *quickest),
                 with_unit(with_digits(quickest->median_us), "µs"));
    html += fact("Widest: " + who(*wide, *widest),
                 with_unit(with_digits(widest->busbw_gbs()), "GB/s busbw"));
  }
  if (machine.contains("copy")) {
    const json& copy = machine.at("copy").at("all_threads");
    const double streaming =
        copy.at("streaming_gbs").is_null() ? 0 : copy.at("streaming_gbs").get<double>();
    const double best = std::max(copy.at("memcpy_gbs").get<double>(), streaming);
    html += fact("Machine copies", with_unit(with_digits(best), "GB/s"));
  }
  const std::vector<std::string> distances = distances_of(machine);
  if (!distances.empty()) html += fact("Between the cores", with_unit(distances.front(), ""));
  return html + "</dl>\n";
}

/// What the page says before all else, where rows do not count, or the ranks shared their cores.
Html busy_of(const std::vector<bench::Measurement>& rows) {
  Html html;
  const std::string busy = bench::not_counting(rows), shared = bench::on_shared_cores(rows);
  if (!busy.empty()) {
    html += markup(
        "<p class=\"warning\">{}. They are hollow in the plots, and say why in the table; no model "
        "and no winner is made of them.</p>\n",
        "The" + busy.substr(3));
  }
  if (!shared.empty()) html += markup("<p class=\"warning\">{}.</p>\n", "T" + shared.substr(1));
  return html;
}

/// A sentence for each comparison. What they differ in stands before it.
Html answers_of(const std::vector<bench::Comparison>& comparisons, bool several_works) {
  Html html;
  for (const bench::Comparison& comparison : comparisons) {
    std::string what = "Here";
    if (comparisons.size() > 1) what += fmt::format(", {} ranks", comparison.ranks);
    if (several_works) what += ", " + work_text(comparison);
    if (!comparison.machine.empty()) what.replace(0, 4, "On " + comparison.machine);
    html += markup("<h1{}>{}: {}</h1>\n", html.empty() ? Html() : Html(" class=\"more\""), what,
                   answer_of(comparison));
  }
  return html;
}

bool are_unlike(const Rows& rows) { return !rows.empty() && !rows.front().machine.empty(); }

/// The machine of all rows; null where it is not known, and where there are several.
json only_machine(const Rows& rows, const std::vector<RowsOrigin>& origins) {
  if (are_unlike(rows)) return {};
  for (const RowsOrigin& origin : origins) {
    if (origin.machine.is_object()) return origin.machine;
  }
  return {};
}

/// Which rows are of which machine and day, where they come from several places.
Html origins_of(const Rows& rows, const std::vector<RowsOrigin>& origins) {
  Html html;
  if (origins.size() < 2) return html;
  if (are_unlike(rows)) {
    html +=
        "<p class=\"warning\">The rows are of unlike machines: each is compared by itself.</p>\n";
  }
  for (const RowsOrigin& origin : origins) {
    html += markup("<p class=\"note\">Rows of {}: {}.</p>\n", origin.name, text_of(origin));
  }
  return html;
}

Html heading_of(const std::vector<bench::Measurement>& rows,
                const std::vector<bench::Comparison>& comparisons,
                const std::vector<RowsOrigin>& origins) {
  const json machine = only_machine(rows, origins);
  std::set<std::string> work, engines;
  for (const bench::Comparison& comparison : comparisons) work.insert(work_text(comparison));
  for (const bench::Measurement& row : rows) engines.insert(row.engine);
  std::string lede = fmt::format("{} of {}", fmt::join(engines, ", "), fmt::join(work, ", "));
  if (machine.is_object()) {
    const std::string name = bench::machine_name(machine);
    if (!name.empty()) lede += " on " + name;
    const bool one_day = origins.size() == 1 && machine.contains("started");
    if (one_day) lede += ", " + machine.at("started").get<std::string>();
  }
  const bool pinned = std::all_of(rows.begin(), rows.end(), [](const bench::Measurement& row) {
    return row.engine != "ringlet" || row.pinned;
  });
  if (pinned && engines.count("ringlet") > 0) lede += ", each of Ringlet's ranks on its own core";
  Html html =
      markup("<header>\n<p class=\"kicker\">ringlet {}</p>\n{}{}<p class=\"lede\">{}.</p>\n{}{}",
             command_of(rows), busy_of(rows), answers_of(comparisons, work.size() > 1), lede,
             origins_of(rows, origins), facts_of(comparisons, machine));
  const auto wrong = std::count_if(rows.begin(), rows.end(), [](auto& m) { return !m.right(); });
  if (wrong > 0) {
    html += markup(
        "<p class=\"warning\">{} of {} rows have wrong results. They are hollow in the plots, "
        "and no model and no winner is made of them.</p>\n",
        wrong, rows.size());
  }
  return html + "</header>\n";
}

std::string sizes_text(const bench::Stretch& stretch) {
  return stretch.from == stretch.to
             ? bench::size_text(stretch.from)
             : bench::size_text(stretch.from) + " to " + bench::size_text(stretch.to);
}

/// The table of which strategy is the fastest where: as measured, or by the models, whose sizes are
/// computed.
Html fastest_table(const bench::Comparison& comparison,
                   const std::vector<bench::Stretch>& stretches, const std::string& id,
                   const char* title, bool computed) {
  Html html = markup(
      "<div class=\"scroll\"><table id=\"{}\"><thead><tr><th>{}</th><th>sizes</th><th>from "
      "about</th></tr></thead><tbody>\n",
      id, title);
  for (const bench::Stretch& stretch : stretches) {
    const std::string sizes = computed
                                  ? bench::rough_size(static_cast<double>(stretch.from)) + " to " +
                                        bench::rough_size(static_cast<double>(stretch.to))
                                  : sizes_text(stretch);
    html += markup("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", names_of(stretch, comparison),
                   sizes, stretch.begins_at ? bench::rough_size(*stretch.begins_at) : "\u2013");
  }
  return html + "</tbody></table></div>\n";
}

Html model_table(const bench::Comparison& comparison, int number) {
  Html html = markup(
      "<div class=\"scroll\"><table id=\"models-{}\"><thead><tr><th>model</th><th>latency of a "
      "step, µs</th><th>GB/s</th><th>off by, median</th><th>at worst</th></tr></thead><tbody>\n",
      number);
  for (const bench::Series& series : comparison.series) {
    if (!series.fit) continue;
    const comm::CostModel& model = series.fit->model;
    const auto error = [&](double share) {
      return series.knows_error() ? fmt::format("{:.0f} %", 100 * share) : "\u2013";
    };
    html +=
        markup("<tr><td>{}</td><td>{:.3g}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
               series.label, 1e6 * model.latency_s,
               model.seconds_per_byte > 0 ? with_digits(1e-9 / model.seconds_per_byte) : "\u2013",
               error(series.fit->median_error), error(series.fit->worst_error));
  }
  return html + "</tbody></table></div>\n";
}

Html fastest_of(const bench::Comparison& comparison, int number, bool has_models) {
  Html html =
      "<h3>Which is the fastest</h3>\n<p class=\"note\">The page&rsquo;s first line counts as fast "
      "what takes at most a tenth longer than the fastest, so that few strategies serve all sizes. "
      "Here those stand together that are within 2 % of the fastest, or whose intervals "
      "overlap.</p>\n<div class=\"side\">\n<div>";
  html += fastest_table(comparison, comparison.fastest, fmt::format("fastest-{}", number),
                        "as measured", false);
  html += "</div>\n<div>";
  if (has_models) {
    html += fastest_table(comparison, bench::fastest_by_models(comparison),
                          fmt::format("crossings-{}", number), "by the models", true);
  }
  return html + "</div>\n</div>\n";
}

Html section_of(const bench::Comparison& comparison, int number) {
  const Html models = model_plots_of(comparison, number);
  Html html = markup("<h2>{} ranks, {}{}</h2>\n", comparison.ranks, work_text(comparison),
                     bench::where_text(comparison.machine));
  html += plots_of(comparison, number);
  if (comparison.series.size() > 1) html += fastest_of(comparison, number, !models.empty());
  if (!comparison.open.empty()) {
    html += markup("<p class=\"note\">{}.</p>\n", open_text(comparison));
  }
  for (const bench::Regret& regret : comparison.regrets) {
    html += markup("<p class=\"note\">{}.</p>\n", to_text(regret, comparison));
  }
  if (models.empty()) return html;
  return html + "<h3>The models</h3>\n" + kModel + models +
         folded("The models as a table", model_table(comparison, number));
}

Html rows_of(const bench::Comparison& comparison) {
  std::vector<std::pair<const bench::Series*, const bench::Measurement*>> rows;
  for (const bench::Series& series : comparison.series) {
    for (const bench::Measurement& m : series.rows) rows.emplace_back(&series, &m);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](auto& a, auto& b) { return a.second->bytes < b.second->bytes; });
  Html html;
  for (const auto& [series, m] : rows) {
    const std::string wrong = !m->checked         ? "n/a"
                              : m->ranks_differ() ? fmt::format("{}, ranks differ", m->wrong)
                                                  : fmt::format("{}", m->wrong);
    html += markup(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2f}</td><td>{:.2f}</td>"
        "<td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        bench::size_text(m->bytes), series->label + bench::where_text(m->machine), m->ranks,
        m->count, m->median_us, m->min_us, m->p99_us, m->algbw_gbs(), m->busbw_gbs(), wrong,
        m->iterations, m->counts ? "yes" : "no: " + m->why_not);
  }
  return html;
}

Html table_of(const std::vector<bench::Comparison>& comparisons, std::size_t rows) {
  Html html =
      "<div class=\"scroll\"><table class=\"wide\" id=\"figures\"><thead><tr>"
      "<th>size</th><th>strategy</th><th>ranks</th><th>count</th><th>time, µs</th><th>min</th>"
      "<th>p99</th><th>algbw, GB/s</th><th>busbw</th><th>#wrong</th><th>calls</th><th>counts</th>"
      "</tr></thead>"
      "<tbody>\n";
  for (const bench::Comparison& comparison : comparisons) html += rows_of(comparison);
  return "<h2>All figures</h2>\n" +
         folded(fmt::format("{} rows", rows), html + "</tbody></table></div>\n");
}

std::string rates_text(const json& rates) {
  std::string text = fmt::format("{:.1f} GB/s by memcpy", rates.value("memcpy_gbs", 0.0));
  if (!rates.at("streaming_gbs").is_null()) {
    text += fmt::format(", {:.1f} with streaming stores", rates.at("streaming_gbs").get<double>());
  }
  return text;
}

Html machine_of(const json& machine) {
  if (!machine.is_object()) {
    return "<p class=\"note\">The file does not say on which machine it was measured.</p>\n";
  }
  const auto text = [&](const char* name) { return machine.value(name, std::string()); };
  Pairs pairs{{"Processor", text("processor")}};
  if (machine.contains("cores")) pairs.emplace_back("Cores", machine.at("cores").dump());
  pairs.emplace_back("Instructions", text("instruction_set"));
  if (machine.contains("cache_bytes")) {
    pairs.emplace_back("Largest cache",
                       bench::size_text(machine.at("cache_bytes").get<std::int64_t>()));
  }
  pairs.emplace_back("Between the cores",
                     fmt::format("{}", fmt::join(distances_of(machine), ", ")));
  if (machine.contains("copy")) {
    pairs.emplace_back("One thread copies", rates_text(machine.at("copy").at("one_thread")));
    pairs.emplace_back("All cores copy", rates_text(machine.at("copy").at("all_threads")));
  }
  if (machine.contains("load_average")) {
    std::vector<std::string> load;
    for (const json& value : machine.at("load_average")) {
      load.push_back(with_decimals(value.get<double>(), 2));
    }
    pairs.emplace_back("Load before", fmt::format("{}", fmt::join(load, ", ")));
  }
  pairs.emplace_back("Ringlet", text("ringlet"));
  pairs.emplace_back("Started", text("started"));
  return list_of(pairs);
}

}  // namespace

std::string text_of(const RowsOrigin& origin) {
  std::string text = bench::machine_name(origin.machine);
  if (text.empty()) return "it does not say on which machine";
  if (origin.machine.contains("started")) {
    text += ", " + on_one_line(origin.machine.at("started").get<std::string>(), 30);
  }
  return text;
}

std::string all_reduce_page(const std::vector<bench::Measurement>& measurements,
                            const std::vector<RowsOrigin>& origins) {
  const std::vector<bench::Comparison> comparisons = bench::compare(measurements);
  Html body = heading_of(measurements, comparisons, origins);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    body += section_of(comparisons[i], static_cast<int>(i + 1));
  }
  body += table_of(comparisons, measurements.size());
  body += "<h2>How, and on what</h2>\n" + how_of(measurements);
  for (const RowsOrigin& origin : origins) {
    if (origins.size() > 1) body += markup("<h3>Rows of {}</h3>\n", origin.name);
    body += machine_of(origin.machine);
  }
  body += markup("<footer>Made by ringlet {} {}.</footer>\n", train::kVersion,
                 command_of(measurements));
  return page_of(title_of(measurements) + " (Ringlet)", body);
}

}  // namespace ringlet::app::report
