#include "app/replay/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/replay/words.h"

namespace ringlet::app::replay {

using report::Html;
using report::markup;
using report::print;

namespace {

/// Buckets beside backward, a training step after the other.
class Lanes {
 public:
  Lanes(const TracedRun& run, const std::vector<Replay>& replays) : run_(run), replays_(replays) {}

  Html html() const {
    Html html;
    for (std::size_t i = 0; i < run_.backward.size(); ++i) {
      const Backward& window = run_.backward[i];
      if (window.rank != 0) break;
      const bool is_last = i + 1 == run_.backward.size() || run_.backward[i + 1].rank != 0;
      html += step(
          window, is_last ? std::numeric_limits<double>::infinity() : run_.backward[i + 1].begin_us,
          i + 1);
    }
    if (html.empty()) return {};
    return "<h2>Buckets beside backward</h2>\n<p class=\"note\">Grey is rank 0&rsquo;s backward, "
           "blue the time from the first rank that comes to the sum until the last one goes. What "
           "lies under the grey is hidden; the share is the mean of all ranks. A click plays the "
           "bucket.</p>\n" +
           html;
  }

 private:
  Html step(const Backward& window, double until, std::size_t number) const {
    Html rows;
    double end = window.end_us;
    const auto is_in = [&](const Replay& replay) {
      return replay.call->begin_us >= window.begin_us && replay.call->begin_us < until;
    };
    for (const Replay& replay : replays_) {
      if (is_in(replay)) end = std::max(end, replay.call->end_us);
    }
    for (std::size_t i = 0; i < replays_.size(); ++i) {
      if (!is_in(replays_[i])) continue;
      const TracedCall& call = *replays_[i].call;
      const auto share = [&](double us) {
        return 100 * (us - window.begin_us) / (end - window.begin_us);
      };
      print(rows,
            "<button data-call=\"{}\">{}</button><div class=\"lane\"><i class=\"back\" "
            "style=\"left:0;width:{:.2f}%\"></i><i{} style=\"left:{:.2f}%;width:{:.2f}%\" "
            "title=\"{} to {}\"></i></div><span>{:.0f} % hidden</span>\n",
            i, call.name, share(window.end_us),
            Html::trusted(call.failed ? " class=\"failed\"" : ""), share(call.begin_us),
            share(call.end_us) - share(call.begin_us), time_text(call.begin_us - window.begin_us),
            time_text(call.end_us - window.begin_us), 100 * hidden_share(call));
    }
    if (rows.empty()) return {};
    return markup("<h3>Backward {}, {}</h3>\n<div class=\"lanes\">\n{}</div>\n", number,
                  time_text(end - window.begin_us), rows);
  }

  /// How much of the ranks' time in the call lies in their backward.
  double hidden_share(const TracedCall& call) const {
    double hidden = 0, all = 0;
    for (const TracedRank& rank : call.ranks) {
      if (!rank.whole) continue;
      const double begin = rank.whole->begin_us, end = begin + rank.whole->duration_us;
      all += end - begin;
      for (const Backward& window : run_.backward) {
        if (window.rank != rank.whole->rank) continue;
        hidden += std::max(0., std::min(end, window.end_us) - std::max(begin, window.begin_us));
      }
    }
    return all > 0 ? hidden / all : 0;
  }

  const TracedRun& run_;
  const std::vector<Replay>& replays_;
};

}  // namespace

Html lanes_of(const TracedRun& run, const std::vector<Replay>& replays) {
  return Lanes(run, replays).html();
}

}  // namespace ringlet::app::replay
