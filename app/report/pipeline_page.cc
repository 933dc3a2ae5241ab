#include "app/report/pipeline_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/report/axis.h"
#include "app/report/page_texts.h"
#include "train/recipe/version.h"
#include "train/telemetry/console.h"

namespace ringlet::app::report {

namespace {

using train::Forecast;

/// "2,590", "25.9"
std::string milliseconds(double seconds) {
  const double ms = 1e3 * seconds;
  return ms < 1000 ? with_digits(ms) : train::with_commas(std::llround(ms));
}

/// What the same stages would do by each schedule.
train::StageTable schedules_of(const Forecast& forecast) {
  train::StageTable table{
      .heads = {"schedule", "step", "bubble", "speed-up", "passes held by stage", "activations"}};
  const auto stages = static_cast<int>(forecast.stages.size());
  const auto micro_batches = static_cast<int>(forecast.sizes.size());
  for (const std::string& name : train::pipeline_schedule_names()) {
    const train::Pipeline pipeline =
        train::make_pipeline(train::parse_pipeline_schedule(name), stages, micro_batches);
    const train::Simulation step = train::simulate(pipeline, forecast.times);
    std::string held;
    std::int64_t bytes = 0;
    for (const train::StageUse& use : step.stages) {
      held += fmt::format("{}{}", held.empty() ? "" : ", ", use.peak_held);
      bytes += use.bytes_held;
    }
    const double share = step.seconds / forecast.step.seconds;
    table.rows.push_back({name == forecast.schedule ? name + " (drawn)" : name,
                          forecast.measured ? milliseconds(step.seconds) + " ms"
                                            : with_decimals(100 * share, 0) + " %",
                          fmt::format("{:.0f} %", 100 * step.bubble),
                          fmt::format("{:.2f}x", step.speedup), held,
                          train::bytes_in_words(bytes)});
  }
  return table;
}

/// The stage that takes longest for a micro-batch, and how much longer than the mean.
struct Slowest {
  int stage = 0;
  double times_the_mean = 1;
};
Slowest slowest_of(const Forecast& forecast) {
  Slowest slowest;
  double most = 0, all = 0;
  for (const train::StageRow& row : forecast.stages) {
    const double seconds = row.forward + row.backward;
    all += seconds;
    if (seconds > most) slowest.stage = row.stage;
    most = std::max(most, seconds);
  }
  if (all > 0) slowest.times_the_mean = most * static_cast<double>(forecast.stages.size()) / all;
  return slowest;
}

const char* words_of(const std::string& schedule) {
  if (schedule == "naive") {
    return "By naive a micro-batch goes all the way forward and back before the next one begins: "
           "one stage works at a time, and holds one pass.";
  }
  if (schedule == "gpipe") {
    return "By gpipe all micro-batches go forward before the first comes back: a stage holds a "
           "pass of each.";
  }
  return "By 1f1b a stage does a forward and a backward in turns as soon as the first gradient has "
         "come back. With stages that are equally fast it takes as long as gpipe, and the first of "
         "p stages holds p passes at most, the last one a single one.";
}

std::string in_plain_words(const Forecast& forecast) {
  const auto p = forecast.stages.size(), m = forecast.sizes.size();
  std::string text =
      fmt::format("A step sends {} micro-batch{} through {} stage{}, each on a device of its own. ",
                  m, m == 1 ? "" : "es", p, p == 1 ? "" : "s");
  if (p > 1) {
    text +=
        "A later stage waits at first, until something has come to it, and the earlier ones "
        "wait at the end. ";
  }
  text += words_of(forecast.schedule);
  if (p == 1) return text;
  if (forecast.schedule != "naive") {
    text += fmt::format(
        " Were all stages equally fast and messages free, {} of {} parts of the time would be "
        "bubble, {:.0f}\u00a0%. ",
        p - 1, m + p - 1, 100. * static_cast<double>(p - 1) / static_cast<double>(m + p - 1));
  } else {
    text += fmt::format(" So {} of {} parts of all stages\u2019 time are bubble. ", p - 1, p);
  }
  const Slowest slowest = slowest_of(forecast);
  text += fmt::format("Here it is {:.0f}\u00a0%", 100 * forecast.step.bubble);
  if (slowest.times_the_mean > 1.02) {
    text += fmt::format(": stage {} takes {:.2f} times the mean of all, and the others wait for it",
                        slowest.stage, slowest.times_the_mean);
  }
  text += ". ";
  if (forecast.schedule != "naive") text += "More micro-batches make it smaller. ";
  return text +
         "Stages that share a processor\u2019s memory or caches slow each other down; that is not "
         "in it.";
}

Html facts_of(const Forecast& forecast) {
  Html html = "<dl class=\"facts\">\n";
  html += fact("Beside one device", markup("{:.2f} <small>times</small>", forecast.step.speedup));
  html += fact("Bubble", markup("{:.0f} <small>%</small>", 100 * forecast.step.bubble));
  if (forecast.measured) {
    html += fact("A step", markup("{} <small>ms</small>", milliseconds(forecast.step.seconds)));
  }
  html += fact("Stages", markup("{}", forecast.stages.size()));
  html += fact("Micro-batches",
               markup("{} <small>{} sample{} {}</small>", forecast.sizes.size(),
                      forecast.sizes.front(), forecast.sizes.front() == 1 ? "" : "s",
                      forecast.sizes.front() == forecast.sizes.back() ? "each" : "at most"));
  html += fact("Schedule", escaped(forecast.schedule));
  return html + "</dl>\n";
}

}  // namespace

Html html_of(const train::StageTable& table, const char* id) {
  Html html = markup("<div class=\"scroll\"><table class=\"wide\" id=\"{}\"><thead><tr>", id);
  for (const std::string& head : table.heads) print(html, "<th>{}</th>", head);
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row) print(html, "<td>{}</td>", cell);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

PipelineTimeline timeline_of(const Forecast& forecast, const std::string& title) {
  PipelineTimeline timeline{.step = forecast.step, .in_seconds = forecast.measured, .title = title};
  for (const train::StageRow& row : forecast.stages) timeline.layers.push_back(row.layers);
  return timeline;
}

std::string pipeline_page(const Forecast& forecast, const std::string& what,
                          const std::string& memory) {
  const std::string title =
      fmt::format("{} stage{} by {}: {:.2f} times one device", forecast.stages.size(),
                  forecast.stages.size() == 1 ? "" : "s", forecast.schedule, forecast.step.speedup);
  Html body = markup(
      "<header>\n<p class=\"kicker\">ringlet pipeline</p>\n<h1>{}</h1>\n<p "
      "class=\"lede\">{}.</p>\n",
      title, what);
  body += facts_of(forecast) + "</header>\n<h2>A step</h2>\n";
  body += timeline_legend() + timeline_of(timeline_of(forecast, title));
  print(body, "<p class=\"prose\">{}</p>\n", in_plain_words(forecast));
  body +=
      "<h2>The stages</h2>\n" + html_of(stage_table(forecast.stages, forecast.measured), "stages");
  if (!memory.empty()) {
    std::string sentence = memory + ".";
    sentence.front() =
        static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    print(body, "<p class=\"note\">{}</p>\n", sentence);
  }
  body += "<h2>By each schedule</h2>\n" + html_of(schedules_of(forecast), "schedules");
  print(body, "<footer>Made by ringlet {} pipeline.</footer>\n", train::kVersion);
  return page_of("A pipeline (Ringlet)", body, {.style = kPipelineStyle});
}

}  // namespace ringlet::app::report
