// The parts of the report's page, each as HTML. They take one run or several: one run has its
// numbers side by side, several have tables and curves over each other, in the same colours.
#pragma once

#include <string>
#include <vector>

#include "app/report/html.h"
#include "app/report/report.h"
#include "app/report/run_folder.h"
#include "app/report/test_results.h"

namespace ringlet::app::report {

/// "lenet on fashion-mnist", for the page's title as well.
std::string title_of(const std::vector<RunFolder>& runs);

/// The first line of the page: "lenet on fashion-mnist: 91.3 % in 23.4 s"; of several runs, which
/// is best, and what came of the first.
std::string answer_of(const std::vector<RunFolder>& runs);

/// What was trained and what came of it. `goes_on`: a run that has not ended may be training.
Html heading(const std::vector<RunFolder>& runs, bool goes_on = false);

/// Loss by step and epoch, accuracy, rate, gradient's norm and speed. Plots with the ids
/// train-loss, epoch-loss, test-accuracy, learning-rate, grad-norm and speed; test-NAME for each
/// figure of a task of one's own.
Html curves_section(const std::vector<RunFolder>& runs);

/// The pairs that runs were verified on: accuracy by step; of the last verification the ROC, the
/// distances of same and different pairs, and the pictures of those that are wrong by most. Plots
/// with the ids verification-accuracy, verification-roc and verification-distances-N; "" where no
/// run has verified.
Html verification_section(const std::vector<RunFolder>& runs);

/// Where the seconds of training went, by epoch for one run, by run for several: bars with the id
/// time.
Html time_section(const std::vector<RunFolder>& runs);

/// Of models in stages: the bubble by epoch, measured and predicted, what each stage did, and who
/// waited for whom. Plots with the ids bubble and stage-time, tables stages and bubbles; "" where
/// no run has any.
Html stages_section(const std::vector<RunFolder>& runs);

/// How a run was set up: what differs from `default_config`, and behind a fold the whole
/// (config.toml as it is, else the recipe of its state). The machine of run.json.
Html setup_section(const std::vector<RunFolder>& runs, const DefaultConfig& default_config);

/// What joins the replicas: of each all-reduce of a step its bytes, its time as predicted and as
/// taken, and the bandwidth that this is. A table with the id ID; "" where run.json has none.
Html sync_table(const RunFolder& run, const std::string& id);

/// The test data: a confusion matrix, each class's accuracy, and the images that the model got most
/// wrong. `weights`: whose answers these are, where the run has not ended. `suffix` ends the ids of
/// its parts (confusion, mistakes), where a page has several.
Html test_section(const TestResults& results, const std::string& weights,
                  const std::string& suffix);

/// A confusion matrix as inline SVG, <figure id="ID" class="plot">: a row a true class, a column an
/// answer, the darker the larger the share of its row. Numbers are written into the cells up to
/// twenty classes.
Html confusion_figure(const TestResults& results, const std::string& id);

}  // namespace ringlet::app::report
