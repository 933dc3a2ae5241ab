#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/report/pair_distances.h"
#include "app/report/sections.h"
#include "app/report/svg_plot.h"
#include "base/files/file_error.h"
#include "base/one_line.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

using Runs = std::vector<RunFolder>;

constexpr std::size_t kShownPairs = 12;
constexpr std::size_t kShownPoints = 400;

/// The names of the sets, in the order in which the runs tell of them.
std::vector<std::string> sets_of(const Runs& runs) {
  std::vector<std::string> names;
  for (const RunFolder& run : runs) {
    for (const train::VerificationMetrics& line : run.metrics.verifications) {
      if (std::ranges::find(names, line.set) == names.end()) names.push_back(line.set);
    }
  }
  return names;
}

AxisSpec axis(const char* title) {
  AxisSpec spec;
  spec.title = title;
  return spec;
}

AxisSpec shares() {
  AxisSpec spec;
  spec.round = true;
  spec.percent = true;
  return spec;
}

/// A set's accuracy over the steps, with the deviation of the folds around it.
Series accuracy_of(const RunFolder& run, const std::string& set) {
  Series series{.look = Look::dotted_line};
  for (const train::VerificationMetrics& line : run.metrics.verifications) {
    if (line.set != set) continue;
    series.curve.add(static_cast<double>(line.step), line.accuracy);
    series.low.push_back(line.accuracy - line.deviation);
    series.high.push_back(std::min(1.0, line.accuracy + line.deviation));
  }
  return series;
}

Plot accuracy_plot(const std::string& id, const std::string& title) {
  Plot plot{id, title, "by step; band: deviation of ten folds", axis("step"), shares(), {}};
  plot.x.whole = true;
  plot.whole_bands = true;
  return plot;
}

/// Of one run all sets in one plot, of several a plot for each set.
Html accuracy_plots(const Runs& runs, const std::vector<std::string>& sets) {
  Html html;
  Plot all = accuracy_plot("verification-accuracy", "Accuracy on pairs");
  for (std::size_t s = 0; s < sets.size(); ++s) {
    Plot own = accuracy_plot(fmt::format("verification-accuracy-{}", s + 1),
                             "Accuracy on " + on_one_line(sets[s]));
    for (std::size_t r = 0; r < runs.size(); ++r) {
      Series series = accuracy_of(runs[r], sets[s]);
      series.name = runs.size() == 1 ? sets[s] : runs[r].name;
      series.color = runs.size() == 1 ? static_cast<int>(s) % kColors : color_of(runs, r);
      (runs.size() == 1 ? all : own).series.push_back(std::move(series));
    }
    if (runs.size() > 1) html += figure_of(own);
  }
  return runs.size() == 1 ? figure_of(all) : html;
}

/// Points that one could tell apart. Those without false accepts have no place on its axis.
Curve roc_curve(const PairDistances& set) {
  Curve curve;
  const std::vector<train::RocPoint> roc = train::figures_of(set.distances, set.same).roc;
  for (const train::RocPoint& point : roc) {
    if (point.false_accepts <= 0) continue;
    const bool far = curve.size() == 0 ||
                     std::log(point.false_accepts / curve.x.back()) > 8.0 / kShownPoints ||
                     point.true_accepts > curve.y.back() + 1.0 / kShownPoints;
    if (far || point.false_accepts >= 1) curve.add(point.false_accepts, point.true_accepts);
  }
  return curve;
}

/// The share of pairs of a kind in each tenth of the squared distance, as steps.
Curve histogram_of(const PairDistances& set, bool same) {
  constexpr int kBins = 40;
  constexpr double kWidth = 0.1;
  std::vector<double> counts(kBins);
  double pairs = 0;
  for (std::size_t i = 0; i < set.distances.size(); ++i) {
    if (set.same[i] != same) continue;
    const int bin = std::min(kBins - 1, static_cast<int>(set.distances[i] / kWidth));
    counts[static_cast<std::size_t>(bin)] += 1;
    pairs += 1;
  }
  Curve curve;
  int last = kBins - 1;
  while (last > 0 && *std::ranges::max_element(set.distances) < last * kWidth) --last;
  for (int bin = 0; bin <= last && pairs > 0; ++bin) {
    const double share = counts[static_cast<std::size_t>(bin)] / pairs;
    curve.add(bin * kWidth, share);
    curve.add((bin + 1) * kWidth, share);
  }
  return curve;
}

Plot distance_plot(const PairDistances& set, const std::string& id) {
  Plot plot{id,
            "Distances on " + set.name,
            "share of the pairs of a kind in each tenth",
            axis("squared distance"),
            shares(),
            {}};
  plot.x.include_low = plot.y.include_low = 0;
  plot.series.push_back({"same", histogram_of(set, true), 0, Look::line});
  plot.series.push_back({"different", histogram_of(set, false), 1, Look::line});
  return plot;
}

Html pair_figure(const WrongPair& pair, const Html& first, const Html& second) {
  return markup(
      "<figure><span class=\"two\"><img src=\"{}\" alt=\"pair {}, first\"><img src=\"{}\" "
      "alt=\"pair {}, second\"></span><figcaption><span class=\"said\">{}</span><br>"
      "<span class=\"is\">distance {:.2f}, pair {}</span></figcaption></figure>\n",
      first, pair.pair, second, pair.pair, pair.same ? "are the same" : "are different",
      pair.distance, pair.pair);
}

Html worst_pairs(const RunFolder& run, const PairDistances& set, const std::string& id) {
  const double threshold = best_threshold(set);
  const std::vector<WrongPair> worst = worst_of(set, threshold, kShownPairs);
  std::int64_t wrong = std::ssize(worst_of(set, threshold, set.distances.size()));
  Html html = markup("<h3>{}: most wrong</h3>\n", set.name);
  html += markup(
      "<p class=\"note\">{} of {} pairs are on the wrong side of {:.2f}, the threshold that suits "
      "all of them best. {}</p>\n",
      train::with_commas(wrong), train::with_commas(std::ssize(set.distances)), threshold,
      worst.empty() ? "" : "Those that are the furthest from it:");
  if (worst.empty()) return html;
  try {
    const std::vector<Html> pictures = pictures_of(run, set.name, worst);
    Html figures;
    for (std::size_t i = 0; i < worst.size(); ++i) {
      figures += pair_figure(worst[i], pictures[2 * i], pictures[2 * i + 1]);
    }
    return html + markup("<div class=\"mistakes pictured\" id=\"{}\">\n", id) + figures +
           "</div>\n";
  } catch (const std::exception&) {  // data's errors are no Error
    return html + markup("<p class=\"warning\">The pictures are not known here: {}</p>\n",
                         message_of_current_exception());
  }
}

/// The distances of each run, or a line that says why they are not known.
std::vector<PairDistances> read_distances(const RunFolder& run, Html& notes) {
  try {
    return distances_of(run);
  } catch (const FileError& error) {
    notes += markup("<p class=\"warning\">Not known here: {}</p>\n", error.what());
    return {};
  }
}

/// Of the last verification; as accuracy_plots().
Html roc_plots(const Runs& runs, const std::vector<std::vector<PairDistances>>& all) {
  std::vector<Plot> plots;
  std::map<std::string, std::size_t> plot_of_set;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::size_t s = 0; s < all[r].size(); ++s) {
      const PairDistances& set = all[r][s];
      const std::string shown_in = runs.size() == 1 ? "" : set.name;
      const auto [found, is_new] = plot_of_set.emplace(shown_in, plots.size());
      if (is_new) {
        const bool one = runs.size() == 1;
        Plot plot{one ? "verification-roc" : fmt::format("verification-roc-{}", plots.size() + 1),
                  one ? "Receiver operating characteristic" : "ROC on " + set.name,
                  "of the last verification",
                  axis("false accepts"),
                  shares(),
                  {}};
        plot.x.log = plot.x.percent = true;
        plot.y.include_high = 1;
        plots.push_back(std::move(plot));
      }
      plots[found->second].series.push_back(
          {runs.size() == 1 ? set.name : runs[r].name, roc_curve(set),
           runs.size() == 1 ? static_cast<int>(s) % kColors : color_of(runs, r), Look::line});
    }
  }
  Html html;
  for (const Plot& plot : plots) html += figure_of(plot);
  return html;
}

}  // namespace

Html verification_section(const Runs& runs) {
  const std::vector<std::string> sets = sets_of(runs);
  if (sets.empty()) return "";
  Html notes, pairs;
  std::vector<std::vector<PairDistances>> distances;
  for (const RunFolder& run : runs) distances.push_back(read_distances(run, notes));
  Html html = "<h2>Verification</h2>\n" + notes + "<div class=\"grid\">\n" +
              accuracy_plots(runs, sets) + roc_plots(runs, distances);
  int number = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const PairDistances& set : distances[r]) {
      ++number;
      Plot plot = distance_plot(set, fmt::format("verification-distances-{}", number));
      if (runs.size() > 1) plot.note = runs[r].name;
      html += figure_of(plot);
      if (runs.size() > 1) pairs += markup("<h3>{}</h3>\n", runs[r].name);
      pairs += worst_pairs(runs[r], set, fmt::format("wrong-pairs-{}", number));
    }
  }
  return html + "</div>\n" + pairs;
}

}  // namespace ringlet::app::report
