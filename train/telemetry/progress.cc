#include "train/telemetry/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/telemetry/console.h"

namespace ringlet::train {

namespace {

struct TableColumn {
  std::string head;
  std::string (*cell)(const EpochReport&);
};

constexpr std::size_t kMeasured = 3;  // the column

/// The accuracy, or the first figure of another task, which says what it is.
std::string measured(const Evaluation& test) {
  if (test.figures.empty()) return fmt::format("{:.2f} %", 100 * test.accuracy());
  return fmt::format("{} {:.4g}", test.figures.front().name, test.figures.front().value);
}

const std::vector<TableColumn>& table_columns() {
  using Row = const EpochReport&;
  static const std::vector<TableColumn> columns{
      {"epoch", [](Row row) { return fmt::format("{}", row.epoch); }},
      {"train loss", [](Row row) { return fmt::format("{:.4f}", row.train_loss); }},
      {"test loss", [](Row row) { return fmt::format("{:.4f}", row.test.loss); }},
      {"test accuracy", [](Row row) { return measured(row.test); }},
      {"seconds", [](Row row) { return fmt::format("{:.1f}", row.seconds); }},
      {"samples/s", [](Row row) { return with_commas(std::llround(row.samples_per_second)); }},
      {"in sync", [](Row row) { return fmt::format("{:.1f} %", 100 * row.sync_share); }}};
  return columns;
}

/// Which texts have room side by side, by index. `least_first`: those that may be left out.
std::vector<std::size_t> those_with_room(const std::vector<std::string>& texts,
                                         const std::string& gap,
                                         const std::vector<std::size_t>& least_first,
                                         std::size_t room) {
  std::vector<std::size_t> kept(texts.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  const auto needed = [&] {
    std::size_t sum = gap.size() * (kept.size() - 1);
    for (const std::size_t i : kept) sum += texts[i].size();
    return sum;
  };
  for (const std::size_t least : least_first) {
    if (needed() > room) std::erase(kept, least);
  }
  return kept;
}

constexpr const char* kTableGap = "   ";
constexpr const char* kLineGap = "  ";

std::string in_time(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

int terminal_columns(std::FILE* out) {
  constexpr int kUsual = 80;
  const int descriptor = fileno(out);
  if (isatty(descriptor) == 0) return 0;
  struct winsize size {};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsual;
}

std::size_t room_on(std::FILE* out) {
  const int columns = terminal_columns(out);
  if (columns == 0) return std::numeric_limits<std::size_t>::max();
  constexpr int kLeast = 20;  // narrower ones may wrap
  return static_cast<std::size_t>(std::max(columns - 1, kLeast));
}

std::string progress_line(const RunProgress& progress, std::size_t room) {
  std::vector<std::string> parts{
      fmt::format("epoch {}/{}", progress.epoch, progress.epochs),
      fmt::format("step {}/{}", progress.step_in_epoch, progress.steps_per_epoch),
      fmt::format("loss {:.4f}", progress.loss),
      with_commas(std::llround(progress.samples_per_second)) + " samples/s",
      in_time(progress.seconds_left) + " left"};
  constexpr double kNoticeable = 0.1;
  std::vector<std::size_t> least_first{3, 2, 1, 4};
  if (progress.data_share >= kNoticeable) {
    parts.push_back(fmt::format("{:.0f} % waiting for data", 100 * progress.data_share));
    least_first.insert(least_first.begin() + 1, parts.size() - 1);
  }
  if (progress.skips > 0) {
    parts.push_back(fmt::format("{} skipped", progress.skips));
    least_first.insert(least_first.begin() + 1, parts.size() - 1);
  }
  std::vector<std::string> shown;
  for (const std::size_t i : those_with_room(parts, kLineGap, least_first, room)) {
    shown.push_back(parts[i]);
  }
  return fmt::format("{}", fmt::join(shown, kLineGap)).substr(0, room);
}

ProgressTable::ProgressTable(std::size_t room, const char* measured) {
  for (const TableColumn& column : table_columns()) heads_.push_back(column.head);
  heads_[kMeasured] = measured;
  columns_ = those_with_room(heads_, kTableGap, {6, 5, 2, 4, 1}, room);
}

std::string ProgressTable::head() const {
  std::vector<std::string> heads;
  for (const std::size_t i : columns_) heads.push_back(heads_[i]);
  return fmt::format("{}\n", fmt::join(heads, kTableGap));
}

std::string ProgressTable::row(const EpochReport& report) const {
  std::vector<std::string> cells;
  for (const std::size_t i : columns_) {
    cells.push_back(fmt::format("{:>{}}", table_columns()[i].cell(report), heads_[i].size()));
  }
  return fmt::format("{}\n", fmt::join(cells, kTableGap));
}

}  // namespace ringlet::train
