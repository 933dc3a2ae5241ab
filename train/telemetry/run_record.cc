#include "train/telemetry/run_record.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "base/memory_limits.h"
#include "base/utc_time.h"
#include "train/recipe/version.h"
#include "train/telemetry/device_report.h"

namespace ringlet::train {

namespace {

using nlohmann::json;

/// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
std::string operating_system() {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  std::string name;
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with(kKey)) continue;
    name = line.substr(kKey.size());
    std::erase(name, '"');
    name += ", ";
  }
  struct utsname kernel {};
  if (uname(&kernel) == 0) name += fmt::format("{} {}", kernel.sysname, kernel.release);
  return name;
}

/// GPUs are asked only where one is used: that opens CUDA's libraries.
json machine_of(const Execution& execution) {
  json machine{{"system", operating_system()}, {"memory_bytes", memory_bytes()}};
  const bool on_gpu =
      std::any_of(execution.devices.begin(), execution.devices.end(),
                  [](const DeviceId& device) { return device.kind == DeviceKind::cuda; });
  const json devices = to_json(on_gpu ? survey_devices() : survey_processor());
  machine["cpu"] = devices.at("cpu");
  if (!on_gpu) return machine;
  machine["gpus"] = devices.at("cuda").at("devices");
  machine["versions"] = devices.at("cuda").at("versions");
  return machine;
}

json data_of(const RunSetup& setup) {
  const TrainOptions& options = setup.options;
  const auto& directory = options.files.data_dir;
  return {{"name", options.recipe.data},
          {"description", setup.data.train->description()},
          {"test_contents", setup.data.test->contents()},
          {"directory", directory.empty() ? "" : std::filesystem::absolute(directory).string()},
          {"synthetic_train", options.synthetic_train},
          {"synthetic_test", options.synthetic_test}};
}

json verification_of(const RunSetup& setup) {
  const std::vector<std::filesystem::path> files = verify_files(setup.options.recipe);
  json sets = json::array();
  for (std::size_t i = 0; i < setup.verification.size(); ++i) {
    const VerificationSet& set = setup.verification[i];
    sets.push_back({{"name", set.name},
                    {"file", std::filesystem::absolute(files[i]).string()},
                    {"pairs", set.pairs->size()},
                    {"hash", fmt::format("{:016x}", set.pairs->hash())}});
  }
  return sets;
}

json run_of(const StartReport& report, const RunSetup& setup) {
  const Execution& execution = setup.options.execution;
  std::vector<std::string> devices;
  for (const DeviceId& device : execution.devices) devices.push_back(device.to_string());
  return {{"epochs", setup.options.recipe.epochs},
          {"steps_per_epoch", report.steps_per_epoch},
          {"planned_steps", report.planned_steps},
          {"first_step", report.first_step},
          {"batch_of_rank", report.batch_of_replica},
          {"shards", report.shards},
          {"devices", devices},
          {"processes", static_cast<std::size_t>(report.ranks) / devices.size()},
          {"stages", report.stages},
          {"machines", report.hosts},
          {"threads", execution.threads},
          {"layout", name_of(report.layout)},
          {"sync", report.sync},
          {"grad_dtype", grad_dtype_name(setup.options.recipe)},
          {"precision", name_of(setup.options.recipe.precision)}};
}

json sync_of(const SyncPlan& plan, const StrategyPick& pick) {
  json sync{{"predicted_from", name_of(plan.source)}, {"buckets", json::array()}};
  if (pick.by != PickedBy::nothing) {
    sync["picked_by"] = name_of(pick.by);
    for (const comm::StrategyRange& range : pick.table) {
      sync["strategies"].push_back(
          {{"from_bytes", range.from_bytes}, {"strategy", range.strategy}});
    }
  }
  for (const PlannedSum& sum : plan.sums) {
    json bucket{{"name", sum.name}, {"bytes", sum.bytes}, {"strategy", sum.strategy}};
    if (plan.source != PredictedFrom::nowhere) bucket["predicted_seconds"] = sum.seconds;
    sync["buckets"].push_back(std::move(bucket));
  }
  return sync;
}

}  // namespace

RunRecord::RunRecord(std::filesystem::path file, const RunSetup& setup, BuildFacts build)
    : file_(std::move(file)), setup_(setup), build_(std::move(build)) {}

void RunRecord::started(const StartReport& report) {
  const nn::Plan& plan = report.plan;
  const double flops = (plan.forward.flops + plan.backward.flops) /
                       static_cast<double>(std::max<std::int64_t>(1, report.samples_per_pass));
  json record{{"ringlet", kVersion},
              {"started", utc_now()},
              {"data", data_of(setup_)},
              {"model",
               {{"name", setup_.options.recipe.model},
                {"parameters", plan.parameter_count},
                {"flops_per_sample", flops}}},
              {"run", run_of(report, setup_)},
              {"machine", machine_of(setup_.options.execution)}};
  if (!build_.empty()) record["build"] = build_;
  if (!setup_.verification.empty()) record["verification"] = verification_of(setup_);
  if (report.forecast != nullptr) record["pipeline"] = to_json(*report.forecast);
  if (!report.sync_plan.sums.empty()) record["sync"] = sync_of(report.sync_plan, report.pick);
  // What a system calls itself need not be UTF-8.
  record_ = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  write_file_atomically(file_, record_);
}

void RunRecord::synchronised(const SyncReport& report) {
  json record = parse_json(record_);
  json& sync = record["sync"];
  sync["steps"] = report.steps;
  sync["waited_seconds"] = report.waited_seconds;
  for (std::size_t i = 0; i < report.seconds.size(); ++i) {
    sync["buckets"][i]["taken_seconds"] = report.seconds[i];
  }
  write_file_atomically(file_, record.dump(1) + "\n");
}

}  // namespace ringlet::train
