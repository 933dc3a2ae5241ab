#include "train/telemetry/epoch_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

namespace ringlet::train {

namespace {

constexpr std::string_view kHead =
    "epoch,train_loss,test_loss,test_accuracy,seconds,samples_per_second,sync_share,data_seconds,"
    "forward_seconds,backward_seconds,sync_seconds,update_seconds";

LineFile::Keep epochs_until(std::int64_t first_step, std::int64_t steps_per_epoch,
                            std::int64_t& told_epoch) {
  if (first_step == 0) return {};
  return [=, &told_epoch](const std::string& line) {
    if (line.starts_with(kHead)) return true;
    std::int64_t epoch = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), epoch);
    const bool ours = error == std::errc() && end != line.data() + line.size() && *end == ',';
    if (!ours || epoch * steps_per_epoch > first_step) return false;
    told_epoch = epoch;
    return true;
  };
}

std::string cell(double value) { return std::isfinite(value) ? fmt::format(",{}", value) : ","; }

}  // namespace

EpochTable::EpochTable(const std::filesystem::path& path, std::int64_t first_step,
                       std::int64_t steps_per_epoch, const std::vector<Figure>& told)
    : file_(path, path.string(), epochs_until(first_step, steps_per_epoch, told_epoch_)) {
  if (!file_.empty()) return;
  std::string head(kHead);
  for (const Figure& figure : told) head += ",train_" + key_of(figure);
  file_.append(head + "\n");
}

void EpochTable::epoch_done(const EpochReport& report) {
  if (report.epoch == told_epoch_) return;
  std::string line = fmt::format("{}", report.epoch);
  for (const double value :
       {report.train_loss, report.test.loss, report.test.accuracy(), report.seconds,
        report.samples_per_second, report.sync_share, report.phases.data, report.phases.forward,
        report.phases.backward, report.phases.sync, report.phases.update}) {
    line += cell(value);
  }
  for (const Figure& figure : report.told) line += cell(figure.value);
  line += "\n";
  file_.append(line);
}

}  // namespace ringlet::train
