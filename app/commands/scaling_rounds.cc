#include "app/commands/scaling_rounds.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/cli/before_meeting.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "app/commands/training_bench.h"
#include "base/files/atomic_file.h"
#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/stop_request.h"

namespace ringlet::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderVariable = "RINGLET_SCALING_FOLDER";
constexpr std::uintmax_t kMostRoundBytes = std::uintmax_t{1} << 26;

fs::path task_file(const fs::path& folder) { return folder / "task.json"; }
fs::path part_file(const fs::path& folder, int rank) {
  return folder / fmt::format("rank-{}.json", rank);
}

std::string new_folder() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) {
    const auto given = comm::environment_variable("TMPDIR");
    throw FileError(fmt::format("{} is no folder for temporary files: {}; set TMPDIR to one",
                                given.value_or("/tmp"), error.message()));
  }
  std::string name = (place / "ringlet-scaling-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw FileError(name + " cannot be created; is TMPDIR writable?");
  }
  return name;
}

nlohmann::json part_json(const bench::RankRound& round) {
  nlohmann::json steps = nlohmann::json::array();
  for (const bench::RankSeconds& step : round.steps) {
    steps.push_back({step.step, step.compute, step.sync, step.update, step.data});
  }
  const Interference& seen = round.seen;
  return {{"seconds", round.seconds},
          {"samples", round.samples},
          {"steps", steps},
          {"seen", {seen.seconds, seen.waited}},
          {"ticks", {seen.switches, seen.stolen, seen.ticks}},
          {"core", {round.core.looks, round.core.shared}}};
}

bench::RankRound part_in(const nlohmann::json& json) {
  bench::RankRound round{.seconds = json.at("seconds"), .samples = json.at("samples")};
  for (const nlohmann::json& step : json.at("steps")) {
    round.steps.push_back({step.at(0), step.at(1), step.at(2), step.at(3), step.at(4)});
  }
  const nlohmann::json &seen = json.at("seen"), &ticks = json.at("ticks"), &core = json.at("core");
  round.seen = {.seconds = seen.at(0),
                .waited = seen.at(1),
                .switches = ticks.at(0),
                .stolen = ticks.at(1),
                .ticks = ticks.at(2)};
  round.core = {.looks = core.at(0), .shared = core.at(1)};
  return round;
}

}  // namespace

ScalingFamilies::ScalingFamilies() : folder_(new_folder()) {
  setenv(kFolderVariable, folder_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
}

ScalingFamilies::~ScalingFamilies() {
  std::error_code error;
  fs::remove_all(folder_, error);
  unsetenv(kFolderVariable);  // NOLINT(concurrency-mt-unsafe): one thread
}

bench::RoundOf ScalingFamilies::rounds_of(const std::vector<bench::ScalingRow>& rows) const {
  return [this, &rows](std::size_t row, std::int64_t warm_up, std::int64_t steps) {
    stop_if(stop_noted);
    const int replicas = rows[row].replicas;
    write_file_atomically(task_file(folder_),
                          nlohmann::json{{"warm_up", warm_up}, {"steps", steps}}.dump());
    std::fflush(stdout);
    const int code = start_processes(replicas);
    if (code != 0) throw Told("a process of the round", code);
    return read(replicas);
  };
}

std::vector<bench::RankRound> ScalingFamilies::read(int replicas) const {
  std::vector<bench::RankRound> ranks;
  for (int rank = 0; rank < replicas; ++rank) {
    const fs::path file = part_file(folder_, rank);
    ranks.push_back(part_in(parse_json(read_text(file, kMostRoundBytes))));
    fs::remove(file);  // a later round must not take it for its own
  }
  return ranks;
}

bool is_scaling_process() { return comm::environment_variable(kFolderVariable).has_value(); }

int run_scaling_process(const comm::ProcessPosition& position,
                        const std::function<ScalingTask(int replicas)>& part_of) {
  const fs::path folder = *comm::environment_variable(kFolderVariable);
  const ScalingTask part = before_meeting(position, [&] { return part_of(position.processes); });
  return run_as_process(position, part.options.execution, [&](comm::Group& group) {
    const nlohmann::json task = parse_json(read_text(task_file(folder), kMostRoundBytes));
    const data::Splits data = open_data(part.flags, part.options);
    const train::RunSetup setup = make_bench_setup(part.options, data, group.size(), &group);
    const auto ranks = bench::measure_round(group, setup, task.at("warm_up"), task.at("steps"));
    write_file_atomically(part_file(folder, group.first_rank()), part_json(ranks.front()).dump());
    return 0;
  });
}

}  // namespace ringlet::app
