// `ringlet report --follow`: the page of runs that go on, made anew when their files change.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/report/report.h"

namespace ringlet::app::report {

/// The first of these folders whose run has told nothing yet, as one that is just starting; nothing
/// where all have. What is no folder has told something: whoever reads it says what is wrong.
std::optional<std::filesystem::path> silent_run(const std::vector<std::filesystem::path>& runs);

/// Waits until silent_run() is none, or until `stop` says so.
void await_runs(const std::vector<std::filesystem::path>& runs, const StopRequest& stop);

/// Calls show(page) with the page of `options.runs`, and again whenever what these runs have told
/// has changed, until options.stop_requested says so. The test images are left out: they would go
/// through the model for each page. Throws FileError where the first page cannot be made; later the
/// last one stays until another can, and warn(why) is called where that takes more than a moment,
/// once for each reason.
void follow_runs(ReportOptions options, Renewal renewal,
                 const std::function<void(std::string page)>& show,
                 const std::function<void(const std::string& why)>& warn);

}  // namespace ringlet::app::report
