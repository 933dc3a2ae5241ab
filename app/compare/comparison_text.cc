// A comparison in words, as a table for a console, and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/compare/comparison.h"
#include "app/report/short_names.h"
#include "base/one_line.h"
#include "bench/all_reduce/sizes.h"
#include "train/recipe/version.h"

namespace ringlet::app::compare {

namespace {

constexpr std::size_t kWidestName = 20;
constexpr const char* kNoInterval = "no interval: one measurement each";

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::equal:
      break;
  }
  return "equal";
}

std::string ratio_digits(double ratio) {
  constexpr double kOdd = 1000;  // times apart
  if (!std::isfinite(ratio)) return "-";
  return ratio < kOdd && ratio > 1 / kOdd ? fmt::format("{:.3f}", ratio)
                                          : fmt::format("{:.2e}", ratio);
}

std::string size_or_nothing(std::int64_t bytes) { return bytes > 0 ? bench::size_text(bytes) : ""; }

/// Rows of one group and name as one line, "tree, 2 ranks ..., 4K to 64M (15 rows)", for as many as
/// one reads.
std::vector<std::string> series_of(const std::vector<Row>& rows) {
  constexpr std::size_t kMost = 20;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::vector<std::vector<const Row*>> series;
  for (const Row& row : rows) {
    const auto [place, is_new] = places.try_emplace({row.group, row.name}, series.size());
    if (is_new) series.emplace_back();
    series[place->second].push_back(&row);
  }
  std::vector<std::string> texts;
  for (const std::vector<const Row*>& one : series) {
    if (texts.size() == kMost) {
      texts.push_back(fmt::format("{} more", series.size() - kMost));
      break;
    }
    const Row& row = *one.front();
    const auto [least, most] = std::minmax_element(
        one.begin(), one.end(), [](const Row* x, const Row* y) { return x->bytes < y->bytes; });
    std::string text = row.name + (row.group.empty() ? "" : ", " + row.group);
    if ((*least)->bytes > 0) text += ", " + bench::size_text((*least)->bytes);
    if (one.size() > 1) {
      text += fmt::format(" to {} ({} rows)", bench::size_text((*most)->bytes), one.size());
    }
    texts.push_back(text);
  }
  return texts;
}

/// "A: 12 rows do not count: the machine was busy", once for each side and reason.
std::vector<std::string> uncounted(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (const auto side : {&Pair::a, &Pair::b}) {
    std::map<std::string, std::vector<const Pair*>> by_reason;
    for (const Pair& pair : comparison.pairs) {
      if (!(pair.*side).why_not.empty()) by_reason[(pair.*side).why_not].push_back(&pair);
    }
    const std::string& name = comparison.names[side == &Pair::a ? 0 : 1];
    for (const auto& [reason, pairs] : by_reason) {
      const std::string first = name_of(pairs.front()->a);
      texts.push_back(pairs.size() == 1
                          ? fmt::format("{}: {} does not count: {}", name, first, reason)
                          : fmt::format("{}: {} and {} more rows do not count: {}", name, first,
                                        pairs.size() - 1, reason));
    }
  }
  return texts;
}

/// Rows under their heading. How wide figures' intervals are is shown where that decides any.
class Table {
 public:
  explicit Table(const std::vector<Pair>& pairs) {
    for (const Pair& pair : pairs) {
      name_ = std::max(name_, std::min(kWidestName, pair.a.name.size()));
      if (pair.a.bytes > 0) size_ = 8;
      if (pair.ratio.has_interval()) spread_ = 7;
    }
  }
  std::string heading(bool in_us) const {
    const std::string unit = in_us ? " us" : "";
    return line("", "size", "A" + unit, "", "B" + unit, "", "ratio", "95 % interval");
  }
  std::string row(const Pair& pair) const {
    const std::string words =
        pair.ratio.has_interval()
            ? fmt::format("{:<16} {}", interval_words(pair.ratio), verdict_words(pair))
            : verdict_words(pair);
    return line(report::shortened(pair.a.name, kWidestName), size_or_nothing(pair.a.bytes),
                text_of_number(pair.a.figure.value), text_of_spread(pair.a.figure),
                text_of_number(pair.b.figure.value), text_of_spread(pair.b.figure),
                ratio_digits(pair.ratio.value), words);
  }

 private:
  std::string line(const std::string& name, const std::string& size, const std::string& a,
                   const std::string& spread_a, const std::string& b, const std::string& spread_b,
                   const std::string& ratio, const std::string& words) const {
    return fmt::format("{:<{}}{:>{}} {:>9}{:>{}} {:>9}{:>{}} {:>7}  {}\n", name, name_,
                       size_ > 0 ? size : "", size_, a, spread_ > 0 ? spread_a : "", spread_, b,
                       spread_ > 0 ? spread_b : "", spread_, ratio, words);
  }

  std::size_t name_ = 4, size_ = 0, spread_ = 0;
};

std::string shown_table(const Comparison& comparison) {
  if (comparison.a.shown.empty()) return "";
  std::string text = "\n";
  for (std::size_t i = 0; i < comparison.a.shown.size(); ++i) {
    text += fmt::format("{:<20} {:>10} {:>10}\n", comparison.a.shown[i].name,
                        comparison.a.shown[i].text, comparison.b.shown[i].text);
  }
  return text +
         "one run each: what another seed would give is not known, so these have no verdict\n";
}

nlohmann::json number_or_none(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

nlohmann::json figure_json(const Figure& figure) {
  nlohmann::json json{{"value", number_or_none(figure.value)}, {"low", nullptr}, {"high", nullptr}};
  if (figure.has_interval()) {
    json.update({{"low", number_or_none(figure.low)}, {"high", number_or_none(figure.high)}});
  }
  return json;
}

nlohmann::json identity_json(const Row& row) {
  nlohmann::json json{{"group", row.group}, {"name", row.name}, {"is_rate", row.is_rate}};
  if (row.bytes > 0) json["bytes"] = row.bytes;
  return json;
}

nlohmann::json side_json(const Row& row) {
  nlohmann::json json = figure_json(row.figure);
  json["counts"] = row.why_not.empty();
  if (!row.why_not.empty()) json["why_not"] = row.why_not;
  return json;
}

nlohmann::json pair_json(const Pair& pair, std::optional<double> limit) {
  nlohmann::json json = identity_json(pair.a);
  json.update({{"a", side_json(pair.a)},
               {"b", side_json(pair.b)},
               {"ratio", figure_json(pair.ratio)},
               {"verdict", pair.counts() ? word_of(verdict_of(pair.ratio)) : "does not count"}});
  if (limit) json["fails"] = pair.counts() && is_worse_than(pair.ratio, *limit);
  return json;
}

nlohmann::json only_json(const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    list.push_back(identity_json(row));
    list.back().update(side_json(row));
  }
  return list;
}

}  // namespace

std::string name_of(const Row& row) {
  return row.name + (row.bytes > 0 ? " " + bench::size_text(row.bytes) : "") +
         (row.of.empty() ? "" : " " + row.of);
}

std::string interval_words(const Figure& ratio) {
  return fmt::format("{} to {}", ratio_digits(ratio.low), ratio_digits(ratio.high));
}

std::string text_of_ratio(const Figure& ratio) {
  return ratio_digits(ratio.value) +
         (ratio.has_interval() ? fmt::format(" ({})", interval_words(ratio)) : "");
}

std::string text_of_number(double value) {
  constexpr double kWhole = 1000, kLong = 1e9, kTiny = 1e-4;
  if (!std::isfinite(value)) return "-";
  if (value >= kLong || value < kTiny) return fmt::format("{:.2e}", value);
  return value >= kWhole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string text_of_spread(const Figure& figure) {
  constexpr double kWide = 10;  // percent
  const double percent = 50 * (figure.high - figure.low) / figure.value;
  if (!figure.has_interval() || !std::isfinite(percent)) return "";
  return percent < kWide ? fmt::format("\u00b1{:.1f}%", percent)
                         : fmt::format("\u00b1{:.3g}%", percent);
}

std::string verdict_words(const Pair& pair) {
  if (!pair.counts()) return "does not count";
  const char* word = word_of(verdict_of(pair.ratio));
  return pair.ratio.has_interval() ? word : fmt::format("{}; {}", word, kNoInterval);
}

std::vector<std::string> warnings_of(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (const Unlike& unlike : comparison.unlike) texts.push_back(unlike.text);
  std::vector<std::string> without;
  for (const auto side : {&Pair::a, &Pair::b}) {
    const bool lacks =
        std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                    [&](const Pair& pair) { return !(pair.*side).figure.has_interval(); });
    if (lacks) without.push_back(comparison.names[side == &Pair::a ? 0 : 1]);
  }
  if (!without.empty()) {
    texts.push_back(
        fmt::format("{} {} rows without an interval, measured once each: these are better or worse "
                    "as plain ratios",
                    fmt::join(without, " and "), without.size() == 1 ? "has" : "have"));
  }
  return texts;
}

std::vector<std::string> notes_of(const Comparison& comparison) {
  std::vector<std::string> texts = uncounted(comparison);
  const auto add = [&](const std::string& name, const std::vector<Row>& rows) {
    for (const std::string& text : series_of(rows)) {
      texts.push_back(fmt::format("only in {}: {}", name, text));
    }
  };
  add(comparison.names[0], comparison.only_a);
  add(comparison.names[1], comparison.only_b);
  return texts;
}

std::string to_text(const Comparison& comparison) {
  std::string text =
      fmt::format("A  {}\nB  {}\n", on_one_line(comparison.a.file), on_one_line(comparison.b.file));
  for (const std::string& warning : warnings_of(comparison)) text += warning + "\n";
  const Table table(comparison.pairs);
  const std::string* group = nullptr;
  for (const Pair& pair : comparison.pairs) {
    if (group == nullptr || *group != pair.a.group) {
      group = &pair.a.group;
      text += (group->empty() ? "\n" : "\n" + *group + "\n") +
              table.heading(comparison.a.kind == Kind::all_reduce);
    }
    text += table.row(pair);
  }
  text += shown_table(comparison);
  const std::vector<std::string> notes = notes_of(comparison);
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += note + "\n";
  return text + fmt::format("\n{}\n{}\n", answer_of(comparison), others_of(comparison));
}

nlohmann::json to_json(const Comparison& comparison, std::optional<double> limit) {
  nlohmann::json rows = nlohmann::json::array(), unlike = rows, shown = rows;
  for (const Pair& pair : comparison.pairs) rows.push_back(pair_json(pair, limit));
  for (const Unlike& one : comparison.unlike) {
    unlike.push_back({{"of", one.of}, {"in_words", one.text}});
  }
  for (std::size_t i = 0; i < comparison.a.shown.size(); ++i) {
    shown.push_back({{"name", comparison.a.shown[i].name},
                     {"a", comparison.a.shown[i].text},
                     {"b", comparison.b.shown[i].text}});
  }
  const Tally tally = tally_of(comparison);
  return {{"ringlet", train::kVersion},
          {"a", on_one_line(comparison.a.file)},
          {"b", on_one_line(comparison.b.file)},
          {"in_words", answer_of(comparison) + "; " + others_of(comparison)},
          {"fail_over", limit ? nlohmann::json(*limit) : nlohmann::json()},
          {"better", tally.better},
          {"worse", tally.worse},
          {"equal", tally.equal},
          {"not_counted", tally.not_counted},
          {"without_interval", tally.without_interval},
          {"unlike", unlike},
          {"rows", rows},
          {"only_in_a", only_json(comparison.only_a)},
          {"only_in_b", only_json(comparison.only_b)},
          {"shown", shown}};
}

}  // namespace ringlet::app::compare
