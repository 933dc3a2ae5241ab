#include <algorithm>
#include <cmath>
#include <set>

#include "app/report/run_folder.h"
#include "app/report/sections.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

using Runs = std::vector<RunFolder>;

constexpr std::size_t kShownPoints = 400;    // of a line: about as many as it has pixels
constexpr std::size_t kOutlinePoints = 600;  // of the raw numbers behind it
constexpr int kTest = 1;                     // colour of test data, beside that of training
constexpr double kWindow = 0.02;             // of the run, that a smoothed line looks back

Curve over_steps(const train::StepColumns& steps, const std::vector<double>& values) {
  Curve curve;
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.add(static_cast<double>(steps.step[i]), values[i]);
  }
  return curve;
}

std::vector<double> speeds_of(const train::StepColumns& steps) {
  std::vector<double> speeds;
  for (std::size_t i = 0; i < steps.seconds.size(); ++i) {
    speeds.push_back(static_cast<double>(steps.samples[i]) / steps.seconds[i]);
  }
  return speeds;
}

/// How many steps a smoothed line looks back.
double window_of(const Curve& curve) {
  constexpr double kLeast = 5;  // of a run of few steps
  return std::max(kLeast, kWindow * static_cast<double>(curve.size()));
}

/// A smoothed line for each run.
template <class Values>
std::vector<Series> smoothed_series(const Runs& runs, Values values) {
  std::vector<Series> series;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const train::StepColumns& steps = runs[i].metrics.steps;
    const Curve raw = over_steps(steps, values(steps));
    series.push_back({runs[i].name, thinned(smoothed(raw, window_of(raw)), kShownPoints),
                      color_of(runs, i), Look::line});
  }
  return series;
}

/// The same with the raw numbers behind, of runs that stand out.
template <class Values>
std::vector<Series> with_outlines(const Runs& runs, Values values) {
  std::vector<Series> series = smoothed_series(runs, values);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (color_of(runs, i) == kGrey) continue;
    const train::StepColumns& steps = runs[i].metrics.steps;
    series.push_back({runs[i].name, outline(over_steps(steps, values(steps)), kOutlinePoints),
                      color_of(runs, i), Look::faint});
  }
  return series;
}

Curve over_epochs(const RunFolder& run, double train::EpochMetrics::*field) {
  Curve curve;
  for (const train::EpochMetrics& epoch : run.metrics.epochs) {
    curve.add(static_cast<double>(epoch.epoch), epoch.*field);
  }
  return outline(curve, kOutlinePoints);
}

/// The axis of steps or epochs.
AxisSpec counted(const char* title) {
  AxisSpec spec;
  spec.title = title;
  spec.whole = true;
  return spec;
}

AxisSpec rounded() {
  AxisSpec spec;
  spec.round = true;
  return spec;
}

AxisSpec from_zero() {
  AxisSpec spec = rounded();
  spec.include_low = 0;
  return spec;
}

Plot train_loss(const Runs& runs) {
  return {"train-loss",
          "Training loss",
          "by step, smoothed; as measured behind",
          counted("step"),
          from_zero(),
          with_outlines(runs, [](const train::StepColumns& steps) { return steps.loss; })};
}

Plot epoch_loss(const Runs& runs) {
  const bool alone = runs.size() == 1;
  Plot plot{"epoch-loss",     "Loss by epoch", alone ? "" : "test; dashed: training",
            counted("epoch"), rounded(),       {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const int color = color_of(runs, i);
    const std::string& name = runs[i].name;
    plot.series.push_back({.name = alone ? "training" : name + ", training",
                           .curve = over_epochs(runs[i], &train::EpochMetrics::train_loss),
                           .color = color,
                           .look = alone ? Look::dotted_line : Look::dashed,
                           .named = alone});
    plot.series.push_back({.name = alone ? "test" : name,
                           .curve = over_epochs(runs[i], &train::EpochMetrics::test_loss),
                           .color = alone ? kTest : color,
                           .look = Look::dotted_line});
  }
  return plot;
}

Plot test_accuracy(const Runs& runs) {
  Plot plot{"test-accuracy", "Test accuracy", "by epoch", counted("epoch"), rounded(), {}};
  plot.y.percent = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool alone = runs.size() == 1;
    plot.series.push_back({runs[i].name, over_epochs(runs[i], &train::EpochMetrics::test_accuracy),
                           alone ? kTest : color_of(runs, i), Look::dotted_line});
  }
  return plot;
}

/// Of tasks of one's own: a plot for each figure of any run.
std::vector<Plot> test_figures(const Runs& runs) {
  std::set<std::string> names;
  for (const RunFolder& run : runs) {
    for (const train::EpochMetrics& epoch : run.metrics.epochs) {
      for (const auto& [name, value] : epoch.test_figures) names.insert(name);
    }
  }
  std::vector<Plot> plots;
  for (const std::string& name : names) {
    Plot& plot = plots.emplace_back(
        Plot{"test-" + name, "Test " + name, "by epoch", counted("epoch"), rounded(), {}});
    std::ranges::replace(plot.title, '_', ' ');
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Curve curve;
      for (const train::EpochMetrics& epoch : runs[i].metrics.epochs) {
        const auto found = epoch.test_figures.find(name);
        curve.add(static_cast<double>(epoch.epoch),
                  found == epoch.test_figures.end() ? NAN : found->second);
      }
      plot.series.push_back({runs[i].name, outline(curve, kOutlinePoints),
                             runs.size() == 1 ? kTest : color_of(runs, i), Look::dotted_line});
    }
  }
  return plots;
}

bool has_accuracy(const RunFolder& run) {
  return std::ranges::any_of(run.metrics.epochs, [](const train::EpochMetrics& epoch) {
    return std::isfinite(epoch.test_accuracy);
  });
}

Plot learning_rate(const Runs& runs) {
  Plot plot{"learning-rate", "Learning rate", "by step", counted("step"), from_zero(), {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const train::StepColumns& steps = runs[i].metrics.steps;
    plot.series.push_back({runs[i].name, thinned(over_steps(steps, steps.lr), kShownPoints),
                           color_of(runs, i), Look::line});
  }
  return plot;
}

Plot grad_norm(const Runs& runs) {
  return {"grad-norm",
          "Norm of the gradient",
          "by step, smoothed; as measured behind",
          counted("step"),
          from_zero(),
          with_outlines(runs, [](const train::StepColumns& steps) { return steps.grad_norm; })};
}

Plot speed(const Runs& runs) {
  Plot plot{"speed",         "Samples per second", "by step, smoothed; band: eight steps of ten",
            counted("step"), from_zero(),          smoothed_series(runs, speeds_of)};
  // Quantiles, since a pause at an epoch's end would make the axis of an outline.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (color_of(runs, i) == kGrey) continue;
    const train::StepColumns& steps = runs[i].metrics.steps;
    const Curve raw = over_steps(steps, speeds_of(steps));
    plot.series[i].low = rolling_quantile(raw, kShownPoints, window_of(raw), 0.1).y;
    plot.series[i].high = rolling_quantile(raw, kShownPoints, window_of(raw), 0.9).y;
  }
  return plot;
}

}  // namespace

Html curves_section(const Runs& runs) {
  Html html = "<h2>Curves</h2>\n<div class=\"grid\">\n";
  std::vector<Plot> plots = test_figures(runs);
  if (plots.empty() || std::ranges::any_of(runs, has_accuracy)) {
    plots.insert(plots.begin(), test_accuracy(runs));
  }
  plots.insert(plots.begin(), {train_loss(runs), epoch_loss(runs)});
  plots.insert(plots.end(), {learning_rate(runs), grad_norm(runs), speed(runs)});
  for (const Plot& plot : plots) html += figure_of(plot);
  return html + "</div>\n";
}

}  // namespace ringlet::app::report
