#include "app/report/simulation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "app/report/html.h"
#include "app/report/page_texts.h"
#include "app/report/step_section.h"
#include "app/report/svg_plot.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/sizes.h"
#include "bench/simulation/ways.h"
#include "train/recipe/version.h"

namespace ringlet::app::report {

namespace {

using bench::Layout;
using nlohmann::json;

/// A strategy that can be played on one of the layouts at least.
struct Shown {
  std::string name;
  bench::LinkCosts costs;
  std::vector<std::vector<bench::Way>> ways;  ///< of each layout; empty: it cannot be there
};

struct Scene {
  std::vector<Layout> layouts;
  std::vector<Shown> strategies;
  std::size_t start = 0;  ///< index of the layout that the page begins with
  double bytes = 0;

  double seconds(const Shown& strategy, std::size_t layout, double n) const {
    double best = INFINITY;
    for (const bench::Way& way : strategy.ways[layout]) {
      const auto scaled = [n](comm::PathCost path) {
        return comm::PathCost{path.steps, path.bytes * n, path.reduced_bytes * n};
      };
      best = std::min(best, seconds_of(scaled(way.between), strategy.costs.between) +
                                seconds_of(scaled(way.inside), strategy.costs.inside));
    }
    return best;
  }
};

Scene scene_of(const bench::Simulation& simulation, const bench::Costs& costs) {
  const Layout& first = simulation.layouts.front();
  Scene scene{.layouts = layouts_like(first, simulation.layouts),
              .bytes = static_cast<double>(simulation.sizes.front())};
  const auto is_first = [&](const Layout& layout) { return layout.ranks() == first.ranks(); };
  scene.start = static_cast<std::size_t>(
      std::find_if(scene.layouts.begin(), scene.layouts.end(), is_first) - scene.layouts.begin());
  for (const comm::Strategy& strategy : simulation.strategies) {
    const auto links = costs.of(strategy.name, first);
    if (!links) continue;
    Shown shown{strategy.name, *links, {}};
    for (const Layout& layout : scene.layouts) shown.ways.push_back(ways_of(strategy, layout));
    const bool any = std::any_of(shown.ways.begin(), shown.ways.end(),
                                 [](const auto& ways) { return !ways.empty(); });
    if (any) scene.strategies.push_back(std::move(shown));
  }
  return scene;
}

/// For the script; a "<" would end its element.
Html data_element(const json& data) {
  std::string text = data.dump();
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return Html::trusted("<script type=\"application/json\" id=\"simulation\">" + text +
                       "</script>\n");
}

json numbers_of(const comm::CostModel& model) {
  return {model.latency_s, model.seconds_per_byte, model.seconds_per_reduced_byte};
}

json numbers_of(const bench::Way& way) {
  return {way.between.steps, way.between.bytes, way.between.reduced_bytes,
          way.inside.steps,  way.inside.bytes,  way.inside.reduced_bytes};
}

json data_of(const Scene& scene, const bench::Costs& costs,
             std::span<const bench::Simulated> rows) {
  json strategies = json::array(), layouts = json::array(), points = json::array();
  for (const Layout& layout : scene.layouts) layouts.push_back({layout.machines, layout.each});
  for (const Shown& shown : scene.strategies) {
    json all = json::array();
    for (const auto& ways : shown.ways) {
      json& of_layout = all.emplace_back(json::array());
      for (const bench::Way& way : ways) of_layout.push_back(numbers_of(way));
    }
    strategies.push_back(
        {{"name", shown.name},
         {"costs", {numbers_of(shown.costs.between), numbers_of(shown.costs.inside)}},
         {"ways", std::move(all)}});
  }
  for (const bench::Simulated& row : rows) {
    if (!row.why_not.empty() || !is_like(row.layout, scene.layouts[scene.start])) continue;
    points.push_back({{"strategy", row.strategy},
                      {"ranks", row.layout.ranks()},
                      {"bytes", row.bytes},
                      {"played", row.seconds}});
    if (row.measured) points.back()["measured"] = 1e-6 * row.measured->median_us;
  }
  return {{"layouts", layouts},
          {"strategies", strategies},
          {"points", points},
          {"start", scene.start},
          {"bytes", scene.bytes},
          {"given", costs.given()},
          {"machines", scene.layouts[scene.start].machines > 1}};
}

std::string where_of(const Layout& layout) {
  if (layout.machines == 1) return fmt::format("{} ranks on one machine", layout.ranks());
  return fmt::format("{} ranks on {} machines", layout.ranks(), layout.machines);
}

/// "two-shot takes 35 us, halving-doubling 85 us"
std::string answer_of(const Scene& scene) {
  std::vector<std::pair<double, std::string>> times;
  for (const Shown& shown : scene.strategies) {
    const double seconds = scene.seconds(shown, scene.start, scene.bytes);
    if (std::isfinite(seconds)) times.emplace_back(seconds, shown.name);
  }
  if (times.empty()) return "nothing can be said of these strategies";
  std::sort(times.begin(), times.end());
  std::string text =
      fmt::format("{} takes {}", times[0].second, bench::seconds_text(times[0].first));
  if (times.size() > 1) {
    text += fmt::format(", {} {}", times[1].second, bench::seconds_text(times[1].first));
  }
  return text;
}

AxisSpec time_axis() {
  return {
      .title = "seconds", .log = true, .label = [](double s) { return bench::seconds_text(s); }};
}

Html over_bytes(const Scene& scene) {
  Plot plot{.id = "over-bytes",
            .title = "Time over bytes",
            .note = where_of(scene.layouts[scene.start]),
            .x = {.title = "bytes on each rank",
                  .log = true,
                  .binary = true,
                  .label = [](double n) { return bench::rough_size(n); }},
            .y = time_axis()};
  for (std::size_t i = 0; i < scene.strategies.size(); ++i) {
    Series series{.name = scene.strategies[i].name, .color = static_cast<int>(i)};
    for (int power = 6; power <= 30; ++power) {
      const double n = std::ldexp(1, power);
      series.curve.add(n, scene.seconds(scene.strategies[i], scene.start, n));
    }
    plot.series.push_back(std::move(series));
  }
  return figure_of(plot);
}

Html over_ranks(const Scene& scene) {
  Plot plot{.id = "over-ranks",
            .title = "Time over ranks",
            .note = bench::bytes_text(static_cast<std::int64_t>(scene.bytes)) + " on each",
            .x = {.title = "ranks", .log = true, .binary = true},
            .y = time_axis()};
  for (std::size_t i = 0; i < scene.strategies.size(); ++i) {
    Series series{.name = scene.strategies[i].name, .color = static_cast<int>(i)};
    for (std::size_t k = 0; k < scene.layouts.size(); ++k) {
      series.curve.add(scene.layouts[k].ranks(),
                       scene.seconds(scene.strategies[i], k, scene.bytes));
    }
    plot.series.push_back(std::move(series));
  }
  return figure_of(plot);
}

Html rows_table(std::span<const bench::Simulated> rows) {
  const bool measured = std::any_of(rows.begin(), rows.end(),
                                    [](const auto& row) { return row.measured.has_value(); });
  Html html = markup(
      "<div class=\"scroll\"><table class=\"wide\" id=\"rows\"><thead><tr><th>strategy</th>"
      "<th>ranks</th><th>machines</th><th>bytes</th><th>played</th><th>formula</th><th>steps</th>"
      "<th>messages</th><th>busiest sends</th>{}</tr></thead><tbody>\n",
      measured ? Html("<th>measured</th><th>off by</th>") : Html());
  for (const bench::Simulated& row : rows) {
    html += markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>", row.strategy,
                   row.layout.ranks(), row.layout.machines, bench::size_text(row.bytes));
    if (!row.why_not.empty()) {
      html +=
          markup("<td colspan=\"{}\" class=\"why\">{}</td></tr>\n", measured ? 7 : 5, row.why_not);
      continue;
    }
    html +=
        markup("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
               bench::seconds_text(row.seconds), bench::seconds_text(row.model_seconds), row.steps,
               row.messages, bench::rough_size(static_cast<double>(row.busiest_bytes)));
    if (row.measured) {
      html += markup("<td>{}</td><td>{:+.1f} %{}</td>",
                     bench::seconds_text(1e-6 * row.measured->median_us), 100 * row.error(),
                     row.took_turns ? " *" : "");
    } else if (measured) {
      html += "<td></td><td></td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

constexpr char kLimits[] =
    "<ul class=\"limits\">\n"
    "<li>A message takes latency + bytes / bandwidth, whatever else is on its way. There are no "
    "packets here, no congestion in switches, no routes that cross.</li>\n"
    "<li>The messages between two machines share the machines&rsquo; links. That is all the "
    "sharing there is.</li>\n"
    "<li>NCCL&rsquo;s protocols, channels and trees are not modelled, nor what Gloo and MPI do "
    "inside. Their own strategies are not on this page.</li>\n"
    "<li>Each rank has a processor of its own. Ranks that share one take turns, of which no model "
    "of a network knows.</li>\n"
    "<li>A slow rank (<code>--slow</code>) is in the dots, which were played. The curves are the "
    "strategies&rsquo; formulas and know of none.</li>\n"
    "</ul>\n";

/// Filled by the script.
constexpr char kPanel[] =
    "<form class=\"sliders\" id=\"sliders\" hidden></form>\n"
    "<p class=\"note\" id=\"pointed\" hidden>Move a slider, or click into a plot to choose bytes "
    "and ranks there. Dots were played, message by message, at the costs that the page began "
    "with; they fade where the sliders have left these. Rings were measured.</p>\n";

constexpr char kParts[] =
    "<h2 id=\"parts-title\" hidden>What the time is made of</h2>\n"
    "<div id=\"parts\" class=\"scroll\"></div>\n";

}  // namespace

std::string simulation_page(const bench::Simulation& simulation, const bench::Costs& costs,
                            const std::vector<bench::Simulated>& rows, const bench::StepSpec& spec,
                            const std::vector<bench::SimulatedStep>& steps) {
  const Scene scene = scene_of(simulation, costs);
  const Layout& layout = scene.layouts[scene.start];
  Html body = markup(
      "<header>\n<p class=\"kicker\">ringlet simulate</p>\n<h1 id=\"answer\">{}, {}: {}</h1>\n"
      "<p class=\"lede\">All-reduce of f32; {}.</p>\n</header>\n",
      where_of(layout), bench::bytes_text(static_cast<std::int64_t>(scene.bytes)), answer_of(scene),
      costs.to_text(layout));
  body += kPanel;
  body += "<div class=\"grid simulated\">\n" + over_bytes(scene) + over_ranks(scene) + "</div>\n";
  body += kParts;
  body += step_section(spec, steps);
  body += "<h2>Played</h2>\n" + rows_table(rows);
  body += "<h2>What no model here knows</h2>\n" + Html(kLimits);
  body += data_element(data_of(scene, costs, rows));
  body += markup("<footer>Made by ringlet {} simulate.</footer>\n", train::kVersion);
  return page_of("All-reduce, simulated (Ringlet)", body,
                 {.style = kSimulationStyle, .script = kSimulationScript});
}

}  // namespace ringlet::app::report
