#include "app/replay/replay_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/replay/lanes.h"
#include "app/replay/page_data.h"
#include "app/replay/replay_texts.h"
#include "app/replay/words.h"
#include "app/report/axis.h"
#include "app/report/html.h"

namespace ringlet::app::replay {

using report::Html;
using report::markup;
using report::print;

namespace {

constexpr char kControls[] = R"html(<div class="controls">
<button id="first" aria-label="to the beginning" title="to the beginning (Home)">&#8676;</button>
<button id="back" aria-label="a step back" title="a step back (left)">&#8592;</button>
<button id="play" title="play or pause (space)">&#9654; Play</button>
<button id="forward" aria-label="a step on" title="a step on (right)">&#8594;</button>
<button id="last" aria-label="to the end" title="to the end (End)">&#8677;</button>
<input id="at" type="range" min="0" value="0" aria-label="moment">
<output id="clock"></output>
<label>clock <select id="clock-of"><option value="step">by step</option><option value="real">real time</option></select></label>
<label>speed <select id="speed"><option value=".25">&frac14;</option><option value=".5">&frac12;</option><option value="1" selected>1</option><option value="2">2</option><option value="4">4</option><option value="10">10</option></select></label>
)html";

constexpr char kStage[] = R"html(</div>
<canvas id="stage" role="img" aria-label="Each rank's parts and the messages between ranks; the table below says the same"></canvas>
<p id="says" aria-live="polite"></p>
<canvas id="times" role="img" aria-label="What each rank does when, in real time"></canvas>
<p id="detail"></p>
</div>
<ul class="keys"><li><i style="background:var(--wait)"></i>waits for others</li>
<li><i style="background:var(--add)"></i>receives and adds (+)</li>
<li><i style="background:var(--move)"></i>sends, or receives in place of what was there (=)</li>
<li><i style="background:var(--c2)"></i>works on memory that all can read</li>
<li><i style="background:var(--bad)"></i>failed, or numbers counted twice</li>
<li><kbd>space</kbd> plays, <kbd>&larr;</kbd> <kbd>&rarr;</kbd> step, <kbd>t</kbd> changes the clock, <kbd>+</kbd> <kbd>-</kbd> the speed</li></ul>
)html";

Html facts_of(const Replay& replay) {
  const std::vector<double> waited = replay.waited_us();
  const auto longest = std::max_element(waited.begin(), waited.end());
  const TracedCall& call = *replay.call;
  const double each = call.size() > 0 ? static_cast<double>(call.bytes) : 0;
  const auto times = [each](std::int64_t bytes) {
    const double share = each > 0 ? static_cast<double>(bytes) / each : 0;
    return markup("{} <small>&times; the data</small>", report::with_digits(share, 3));
  };
  Html html = "<dl class=\"facts\">\n";
  html += report::fact("ranks", markup("{}", call.size()));
  html += report::fact("data of each",
                       markup("{} <small>B of {}</small>", count_text(call.bytes), call.type));
  html += report::fact("steps", markup("{}", replay.steps));
  html += report::fact("messages", markup("{}", count_text(replay.totals.messages)));
  html += report::fact("all ranks send", times(replay.totals.bytes));
  html += report::fact("the busiest rank sends", times(replay.totals.busiest_bytes));
  html += report::fact("time", markup("{}", time_text(call.end_us - call.begin_us)));
  html += report::fact("waits longest", markup("rank {} <small>{}</small>",
                                               longest - waited.begin(), time_text(*longest)));
  html += "</dl>\n";
  return html;
}

/// What has changed on a rank in a step: "part 2: 0, 1; parts 3-5: all".
std::string changes_text(const std::vector<const StateChange*>& changes) {
  std::vector<std::pair<std::string, std::vector<int>>> parts_of;  // by what they hold
  for (const StateChange* change : changes) {
    const std::string holds = words_of(change->has);
    if (parts_of.empty() || parts_of.back().first != holds) parts_of.push_back({holds, {}});
    parts_of.back().second.push_back(change->part);
  }
  std::string text;
  for (const auto& [holds, parts] : parts_of) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ",
                        parts.size() > 1 ? "parts" : "part", ranges_of(parts), holds);
  }
  return text;
}

Html table_of(const Replay& replay) {
  std::map<std::pair<int, int>, std::vector<const StateChange*>> changes;  // of a step and a rank
  for (const StateChange& change : replay.changes) {
    changes[{change.step, change.rank}].push_back(&change);
  }
  Html html = "<div class=\"scroll\"><table class=\"steps\">\n<tr><th>step</th>";
  for (int rank = 0; rank < replay.ranks(); ++rank) print(html, "<th>rank {}</th>", rank);
  html += "</tr>\n";
  for (int step = 1; step <= replay.steps; ++step) {
    print(html, "<tr><td>{}</td>", step);
    for (int rank = 0; rank < replay.ranks(); ++rank) {
      const auto found = changes.find({step, rank});
      print(html, "<td class=\"holds\">{}</td>",
            found == changes.end() ? std::string() : changes_text(found->second));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

Html failure_of(const Replay& replay) {
  if (!replay.call->failed) return {};
  std::string error;
  for (const TracedRank& rank : replay.call->ranks) {
    if (rank.whole && !rank.whole->error.empty()) error = rank.whole->error;
  }
  return markup("<p class=\"warning\"><b>It failed.</b> {}{}{}</p>\n", error,
                error.empty() || replay.stuck.empty() ? "" : "; ", replay.stuck);
}

Html section_of(const Replay& replay, std::size_t number) {
  const TracedCall& call = *replay.call;
  Html html =
      markup("<section data-shows=\"{}\">\n<h2>{}, call {}</h2>\n", number, call.name, call.number);
  if (!call.members.empty()) {
    print(html, "<p class=\"note\">Its ranks 0 to {} are the ranks {} of the world.</p>\n",
          call.size() - 1, fmt::format("{}", fmt::join(call.members, ", ")));
  }
  html += failure_of(replay);
  html += facts_of(replay);
  html += report::folded("What each step brings, as a table", table_of(replay));
  return html + "</section>\n";
}

Html chooser_of(const std::vector<Replay>& replays) {
  if (replays.size() == 1) return {};
  Html html = "<label>call <select id=\"chooser\">";
  for (std::size_t i = 0; i < replays.size(); ++i) {
    const TracedCall& call = *replays[i].call;
    const std::string ranks =
        call.members.empty() ? "" : fmt::format(", ranks {}", fmt::join(call.members, ", "));
    print(html, "<option value=\"{}\">{}: {}{}{}</option>", i, call.number, call.name, ranks,
          call.failed ? " (failed)" : "");
  }
  return html + "</select></label>\n";
}

Html data_of(const std::vector<Replay>& replays) {
  nlohmann::json data = nlohmann::json::array();
  for (const Replay& replay : replays) data.push_back(data_for_script(replay));
  std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");  // or a name could end the script
  }
  return Html::trusted("<script type=\"application/json\" id=\"calls\">" + text + "</script>\n");
}

}  // namespace

std::size_t calls_on_a_page(const std::vector<Replay>& replays) {
  constexpr std::size_t kMostRecords = 150'000, kMostCalls = 200;  // some 6 MB
  std::size_t records = 0, calls = 0;
  for (const Replay& replay : replays) {
    records += replay.flights.size() + replay.changes.size() + replay.stays.size();
    if (calls > 0 && (records > kMostRecords || calls == kMostCalls)) break;
    ++calls;
  }
  return calls;
}

std::string page_of(const std::string& trace, const TracedRun& run,
                    const std::vector<Replay>& all) {
  const std::vector<Replay> replays(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(calls_on_a_page(all)));
  const TracedCall& first = *replays.front().call;
  const bool alike = std::all_of(replays.begin(), replays.end(), [&first](const Replay& replay) {
    return replay.call->name == first.name && replay.call->size() == first.size();
  });
  const std::string title = alike ? fmt::format("{} on {} ranks", first.name, first.size())
                                  : fmt::format("{} calls of a run", replays.size());
  Html html =
      markup("<style>{}</style>\n<p class=\"kicker\">Ringlet replay of {}</p>\n<h1>{}</h1>\n",
             Html::trusted(kReplayStyle), trace, title);
  html +=
      "<p class=\"lede\">A row is a rank, a column a part of its data. A cell&rsquo;s stripes say "
      "whose numbers are in it, each in its rank&rsquo;s colour; it is done when it has the "
      "stripes of all. By step, messages fly that do not wait for each other; in real time, "
      "all is as it was traced.</p>\n";
  if (replays.size() < all.size()) {
    print(html,
          "<p class=\"note\">These are the first {} of {} calls; <code>--call</code> with a "
          "number or a name chooses others.</p>\n",
          replays.size(), all.size());
  }
  html += "<div id=\"player\" hidden>\n";
  html += kControls;
  html += chooser_of(replays);
  html += kStage;
  html += lanes_of(run, replays);
  for (std::size_t i = 0; i < replays.size(); ++i) html += section_of(replays[i], i);
  html += data_of(replays);
  print(html, "<script>{{\n{}}}</script>\n", Html::trusted(kReplayScript));
  return report::page_of(title, html);
}

}  // namespace ringlet::app::replay
