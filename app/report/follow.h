// `ringlet report --follow`: the page of runs that go on, made anew when their files change.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "app/report/report.h"

namespace ringlet::app::report {

/// Calls show(page) with the page of `options.runs`, and again whenever what these runs have told
/// has changed, until options.stop_requested says so. The test images are left out: they would go
/// through the model for each page. Throws FileError where the first page cannot be made; later the
/// last one stays until another can.
void follow_runs(ReportOptions options, Renewal renewal,
                 const std::function<void(std::string page)>& show);

}  // namespace ringlet::app::report
