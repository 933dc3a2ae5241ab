#include "app/report/report.h"

#include <fmt/format.h>

#include "app/report/html.h"
#include "app/report/run_folder.h"
#include "app/report/sections.h"
#include "app/report/svg_plot.h"
#include "app/report/test_results.h"
#include "base/error.h"
#include "train/recipe/version.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

static_assert(kMaxRuns <= kColors);

namespace {

/// The section on the model's answers, or a line that says why they are not known.
Html answers_of(const RunFolder& run, const ReportOptions& options, const std::string& suffix) {
  try {
    const std::string weights = run.finished
                                    ? ""
                                    : fmt::format("the weights of its last state, after step {}",
                                                  train::with_commas(run.state_step));
    return test_section(test_model(run, options.data_dir, options.stop_requested), weights, suffix);
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {  // data's errors are no Error
    return markup("<p class=\"warning\" id=\"no-test{}\">Not known here: {}</p>\n", suffix,
                  message_of_current_exception());
  }
}

Html test_sections(const std::vector<RunFolder>& runs, const ReportOptions& options) {
  Html html = "<h2>Test images</h2>\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > 1) html += markup("<h3>{}</h3>\n", runs[i].name);
    html += answers_of(runs[i], options, i == 0 ? "" : fmt::format("-{}", i + 1));
  }
  return html;
}

/// Where the server has gone, the page stays as it is.
constexpr const char* kAsksServer = R"js(
{
  let shown = null;
  setInterval(async () => {
    try {
      const stamp = await (await fetch('/stamp', {cache: 'no-store'})).text();
      if (shown !== null && shown !== stamp) location.reload();
      shown = stamp;
    } catch (gone) {}
  }, 1000);
}
)js";
constexpr const char* kByItself = "\nsetTimeout(() => location.reload(), 5000);\n";

const char* script_of(Renewal renewal) {
  if (renewal == Renewal::none) return "";
  return renewal == Renewal::asks_server ? kAsksServer : kByItself;
}

Html test_images(const std::vector<RunFolder>& runs, const ReportOptions& options) {
  if (options.renewal == Renewal::none) return test_sections(runs, options);
  return "<p class=\"note\" id=\"followed\">This page follows the run. The test images are on the "
         "page that ringlet report makes without --follow.</p>\n";
}

}  // namespace

std::string report_page(const ReportOptions& options) {
  require(!options.runs.empty() && options.runs.size() <= kMaxRuns, "report",
          "one to eight runs are needed");
  const std::vector<RunFolder> runs = read_runs(options.runs);
  Html body = heading(runs, options.renewal != Renewal::none) + curves_section(runs) +
              verification_section(runs) + time_section(runs) + stages_section(runs) +
              test_images(runs, options) + setup_section(runs, options.default_config);
  body += markup("<footer>Made by ringlet {} report.</footer>\n", train::kVersion);
  return page_of(title_of(runs) + " (Ringlet)", body, {.script = script_of(options.renewal)});
}

}  // namespace ringlet::app::report
