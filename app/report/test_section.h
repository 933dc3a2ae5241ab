// The report's part on the test data: a confusion matrix, each class's accuracy, and the images
// that the model got most wrong.
#pragma once

#include <string>

#include "app/report/test_results.h"

namespace ringlet::app::report {

/// `suffix` ends the ids of its parts (confusion, mistakes), where a page has several.
std::string test_section(const TestResults& results, const std::string& suffix);

}  // namespace ringlet::app::report
