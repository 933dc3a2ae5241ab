#include "bench/all_reduce/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files/input_file.h"
#include "base/files/json_text.h"
#include "base/one_line.h"
#include "base/utc_time.h"
#include "bench/all_reduce/measurement.h"
#include "train/recipe/version.h"
#include "train/telemetry/device_report.h"

namespace ringlet::bench {

namespace {

nlohmann::json to_json(const CopyRate& rate) {
  nlohmann::json json = {{"memcpy_gbs", rate.memcpy_gbs}, {"streaming_gbs", nullptr}};
  if (rate.streaming_gbs) json["streaming_gbs"] = *rate.streaming_gbs;
  return json;
}

}  // namespace

std::vector<double> load_average() {
  std::array<double, 3> load{};
  const int known = getloadavg(load.data(), static_cast<int>(load.size()));
  return known < 0 ? std::vector<double>()
                   : std::vector<double>(load.begin(), load.begin() + known);
}

MachineRecord survey_machine() {
  const train::DeviceReport processor = train::survey_processor();
  MachineRecord machine;
  machine.processor = processor.processor;
  machine.cores = processor.cores;
  machine.instruction_set = processor.instruction_set;
  machine.cache_bytes = largest_cache_bytes();
  machine.load_average = load_average();
  machine.copy = measure_copy_bandwidth();
  machine.ringlet = train::kVersion;
  machine.started = utc_now();
  return machine;
}

nlohmann::json to_json(const MachineRecord& machine) {
  nlohmann::json distances = nlohmann::json::array();
  for (const CoreDistance& distance : machine.distances) {
    distances.push_back({{"nanoseconds", distance.nanoseconds}, {"word", distance.word()}});
  }
  return {{"processor", machine.processor},
          {"cores", machine.cores},
          {"instruction_set", machine.instruction_set},
          {"cache_bytes", machine.cache_bytes},
          {"load_average", machine.load_average},
          {"core_distances", distances},
          {"copy",
           {{"buffer_bytes", machine.copy.buffer_bytes},
            {"threads", machine.copy.threads},
            {"one_thread", to_json(machine.copy.one)},
            {"all_threads", to_json(machine.copy.all)}}},
          {"ringlet", machine.ringlet},
          {"started", machine.started}};
}

namespace {

bool has_rates(const nlohmann::json& copy, const char* threads) {
  if (!copy.contains(threads) || !copy.at(threads).is_object()) return false;
  const nlohmann::json& rates = copy.at(threads);
  return rates.contains("memcpy_gbs") && rates.at("memcpy_gbs").is_number() &&
         rates.contains("streaming_gbs") &&
         (rates.at("streaming_gbs").is_null() || rates.at("streaming_gbs").is_number());
}

bool is_list(const nlohmann::json& machine, const char* name,
             bool (nlohmann::json::*is)() const noexcept) {
  if (!machine.contains(name) || !machine.at(name).is_array()) return false;
  for (const nlohmann::json& item : machine.at(name)) {
    if (!(item.*is)()) return false;
  }
  return true;
}

}  // namespace

std::string machine_name(const nlohmann::json& machine) {
  constexpr std::size_t kLongest = 60;
  std::vector<std::string> words;
  if (!machine.is_object()) return "";
  if (machine.contains("processor")) {
    words.push_back(on_one_line(machine.at("processor").get<std::string>(), kLongest));
  }
  if (machine.contains("cores")) words.push_back(machine.at("cores").dump() + " cores");
  return fmt::format("{}", fmt::join(words, ", "));
}

nlohmann::json read_machine(const std::filesystem::path& file) {
  nlohmann::json json = json_or_discarded(read_text(file, kMostRowsBytes));
  if (!json.is_object() || !json.contains("machine") || !json.at("machine").is_object()) return {};
  nlohmann::json machine = json.at("machine");
  const bool copies = machine.contains("copy") && machine.at("copy").is_object() &&
                      has_rates(machine.at("copy"), "one_thread") &&
                      has_rates(machine.at("copy"), "all_threads");
  if (!copies) machine.erase("copy");
  for (const char* text : {"processor", "instruction_set", "ringlet", "started"}) {
    if (machine.contains(text) && !machine.at(text).is_string()) machine.erase(text);
  }
  for (const char* number : {"cores", "cache_bytes"}) {
    if (machine.contains(number) && !machine.at(number).is_number_integer()) machine.erase(number);
  }
  if (!is_list(machine, "load_average", &nlohmann::json::is_number)) machine.erase("load_average");
  if (!is_list(machine, "core_distances", &nlohmann::json::is_object)) {
    machine.erase("core_distances");
  }
  return machine;
}

}  // namespace ringlet::bench
