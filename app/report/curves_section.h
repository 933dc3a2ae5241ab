// The report's curves: loss by step and epoch, accuracy, rate, gradient's norm and speed, of one
// run or of several over each other.
#pragma once

#include <string>
#include <vector>

#include "app/report/run_folder.h"

namespace ringlet::app::report {

/// Plots with the ids train-loss, epoch-loss, test-accuracy, learning-rate, grad-norm and speed.
std::string curves_section(const std::vector<RunFolder>& runs);

}  // namespace ringlet::app::report
