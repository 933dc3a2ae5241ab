// `ringlet report`: one page that shows one run, or compares several (docs/reports.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/stop_request.h"

namespace ringlet::app::report {

/// The most runs of a page: as many as there are colours.
inline constexpr std::size_t kMaxRuns = 8;

/// The text that config.toml has after a run of this model in which nothing was set. Throws Error
/// for a model that is not known.
using DefaultConfig = std::function<std::string(const std::string& model)>;

/// How a page keeps up with runs that go on.
enum class Renewal : std::uint8_t {
  none,
  asks_server,  ///< it asks /stamp (page_server.h), and loads itself anew where that has changed
  by_itself     ///< a file: it loads itself anew every few seconds
};

struct ReportOptions {
  std::vector<std::filesystem::path> runs;  ///< folders; 1 to kMaxRuns
  std::string data_dir;                     ///< where the data lies now; empty: where it lay then
  DefaultConfig default_config{};           ///< empty: not known
  StopRequest stop_requested{};             ///< asked once a pass; then Stopped is thrown
  Renewal renewal = Renewal::none;          ///< else the test images are left out
};

/// The page. What cannot be had (the data, the model, the machine) is named there. Throws
/// FileError where a folder is no run, or its metrics are broken.
std::string report_page(const ReportOptions& options);

}  // namespace ringlet::app::report
