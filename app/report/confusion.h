// A confusion matrix as inline SVG: a row a true class, a column an answer, the darker the larger
// the share of its row.
#pragma once

#include <string>

#include "app/report/test_results.h"

namespace ringlet::app::report {

/// <figure id="ID" class="plot">. Numbers are written into the cells up to twenty classes.
std::string confusion_figure(const TestResults& results, const std::string& id);

}  // namespace ringlet::app::report
