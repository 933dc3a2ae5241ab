#include <algorithm>
#include <cmath>

#include "app/report/sections.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {

namespace {

using train::EpochMetrics;
using train::StepColumns;
using Runs = std::vector<RunFolder>;

constexpr std::size_t kShownPoints = 400;    // of a line: about as many as it has pixels
constexpr std::size_t kOutlinePoints = 600;  // of the raw numbers behind it
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

/// A smoothed line for each run, and with one run the raw numbers behind it.
template <class Values>
std::vector<Series> smoothed_series(const Runs& runs, Values values) {
  std::vector<Series> series;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const train::StepColumns& steps = runs[i].metrics.steps;
    const Curve raw = over_steps(steps, values(steps));
    const auto color = static_cast<int>(i);
    const double window = kWindow * static_cast<double>(raw.size());
    series.push_back({runs[i].name, outline(raw, kOutlinePoints), color, Look::faint});
    series.push_back(
        {runs[i].name, thinned(smoothed(raw, window), kShownPoints), color, Look::line});
  }
  return series;
}

Curve over_epochs(const RunFolder& run, double train::EpochMetrics::*field) {
  Curve curve;
  for (const train::EpochMetrics& epoch : run.metrics.epochs) {
    curve.add(static_cast<double>(epoch.epoch), epoch.*field);
  }
  return curve;
}

/// The axis of steps or epochs.
AxisSpec axis(const char* title) {
  AxisSpec spec;
  spec.title = title;
  spec.whole = true;
  return spec;
}

AxisSpec rounded(const char* title = "") {
  AxisSpec spec = axis(title);
  spec.round = true;
  return spec;
}

AxisSpec from_zero(const char* title = "") {
  AxisSpec spec = rounded(title);
  spec.include_low = 0;
  return spec;
}

Plot train_loss(const Runs& runs) {
  return {"train-loss",
          "Training loss",
          "by step, smoothed; as measured behind",
          axis("step"),
          from_zero(),
          smoothed_series(runs, [](const train::StepColumns& steps) { return steps.loss; })};
}

Plot epoch_loss(const Runs& runs) {
  Plot plot{"epoch-loss", "Loss by epoch", "", axis("epoch"), from_zero(), {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool alone = runs.size() == 1;
    const auto color = static_cast<int>(i);
    const std::string before = alone ? "" : runs[i].name + ", ";
    plot.series.push_back({before + "training",
                           over_epochs(runs[i], &train::EpochMetrics::train_loss), color,
                           alone ? Look::dotted_line : Look::dashed});
    plot.series.push_back({before + "test", over_epochs(runs[i], &train::EpochMetrics::test_loss),
                           alone ? 1 : color, Look::dotted_line});
  }
  return plot;
}

Plot test_accuracy(const Runs& runs) {
  Plot plot{"test-accuracy", "Test accuracy", "by epoch", axis("epoch"), rounded(), {}};
  plot.y.percent = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool alone = runs.size() == 1;
    plot.series.push_back({runs[i].name, over_epochs(runs[i], &train::EpochMetrics::test_accuracy),
                           alone ? 1 : static_cast<int>(i), Look::dotted_line});
  }
  return plot;
}

Plot learning_rate(const Runs& runs) {
  Plot plot{"learning-rate", "Learning rate", "by step", axis("step"), from_zero(), {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const train::StepColumns& steps = runs[i].metrics.steps;
    plot.series.push_back({runs[i].name, thinned(over_steps(steps, steps.lr), kShownPoints),
                           static_cast<int>(i), Look::line});
  }
  return plot;
}

Plot grad_norm(const Runs& runs) {
  return {"grad-norm",
          "Norm of the gradient",
          "by step, smoothed; as measured behind",
          axis("step"),
          from_zero(),
          smoothed_series(runs, [](const train::StepColumns& steps) { return steps.grad_norm; })};
}

Plot speed(const Runs& runs) {
  Plot plot{"speed",      "Samples per second", "by step, smoothed",
            axis("step"), from_zero(),          smoothed_series(runs, speeds_of)};
  // A pause at an epoch's end, or a first step, would make the axis: the outline is left out.
  std::erase_if(plot.series, [](const Series& one) { return one.look == Look::faint; });
  return plot;
}

}  // namespace

std::string curves_section(const Runs& runs) {
  std::string html = "<h2>Curves</h2>\n<div class=\"grid\">\n";
  for (const Plot& plot : {train_loss(runs), epoch_loss(runs), test_accuracy(runs),
                           learning_rate(runs), grad_norm(runs), speed(runs)}) {
    html += figure_of(plot);
  }
  return html + "</div>\n";
}

}  // namespace ringlet::app::report
