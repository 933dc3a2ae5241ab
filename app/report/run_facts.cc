#include "app/report/run_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"

namespace ringlet::app::report {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;  // ours has four levels

/// Beyond it nothing is counted: the number is none of ours.
constexpr double kMostCounted = 1e15;

double number_of(const json& value) {
  const double number = value.is_number() ? value.get<double>() : RunFacts::kNone;
  return std::abs(number) < kMostCounted ? number : RunFacts::kNone;
}

std::string text_in(const json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                            : "";
}
double number_in(const json& object, const char* key) {
  return object.contains(key) ? number_of(object.at(key)) : RunFacts::kNone;
}

/// run.json, read field by field; any field may be missing.
class Record {
 public:
  explicit Record(json root) : root_(std::move(root)) {}

  std::string text(const char* place) const {
    const json* found = at(place);
    return found != nullptr && found->is_string() ? found->get<std::string>() : "";
  }
  double number(const char* place) const {
    const json* found = at(place);
    return found != nullptr ? number_of(*found) : RunFacts::kNone;
  }
  /// Calls f(key, entry) for each entry of a list or an object.
  template <class F>
  void for_each(const char* place, F f) const {
    const json* found = at(place);
    if (found == nullptr) return;
    for (const auto& [key, entry] : found->items()) f(key, entry);
  }

 private:
  const json* at(const char* place) const {
    const json::json_pointer pointer(place);
    return root_.contains(pointer) ? &root_.at(pointer) : nullptr;
  }
  json root_;
};

std::string plain(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void append(std::string& list, const std::string& entry) {
  if (!list.empty()) list += ", ";
  list += entry;
}

void read_run_part(const Record& record, RunFacts& facts) {
  facts.epochs = record.number("/run/epochs");
  facts.planned_steps = record.number("/run/planned_steps");
  facts.processes = record.number("/run/processes");
  facts.threads = record.number("/run/threads");
  facts.machines = record.text("/run/machines");
  facts.sync = record.text("/run/sync");
  facts.layout = record.text("/run/layout");
  facts.precision = record.text("/run/precision");
  double batch = 0, replicas = 0;
  record.for_each("/run/batch_of_rank", [&](const std::string&, const json& share) {
    batch += share.is_number() ? share.get<double>() : 0;
    ++replicas;
  });
  if (replicas > 0) {
    facts.batch = batch;
    facts.replicas = replicas;
  }
  record.for_each("/run/devices", [&](const std::string&, const json& device) {
    append(facts.devices, plain(device));
  });
}

void read_sync_part(const Record& record, RunFacts& facts) {
  facts.predicted_from = record.text("/sync/predicted_from");
  facts.waited_seconds = record.number("/sync/waited_seconds");
  record.for_each("/sync/buckets", [&](const std::string&, const json& bucket) {
    if (!bucket.is_object()) return;
    facts.sums.push_back({.name = text_in(bucket, "name"),
                          .strategy = text_in(bucket, "strategy"),
                          .bytes = number_in(bucket, "bytes"),
                          .predicted_seconds = number_in(bucket, "predicted_seconds"),
                          .taken_seconds = number_in(bucket, "taken_seconds")});
  });
}

void read_machine_part(const Record& record, RunFacts& facts) {
  facts.system = record.text("/machine/system");
  facts.processor = record.text("/machine/cpu/name");
  facts.instruction_set = record.text("/machine/cpu/instruction_set");
  facts.openblas = record.text("/machine/cpu/openblas");
  facts.cores = record.number("/machine/cpu/cores");
  facts.memory_bytes = record.number("/machine/memory_bytes");
  record.for_each("/machine/gpus", [&](const std::string&, const json& gpu) {
    if (!gpu.is_object()) return;
    append(facts.gpus, fmt::format("{} ({})", plain(gpu.value("name", json("GPU"))),
                                   plain(gpu.value("device", json("")))));
  });
  record.for_each("/machine/versions", [&](const std::string& what, const json& version) {
    if (version.is_string()) append(facts.ringlet, what + " " + plain(version));
  });
}

}  // namespace

RunFacts parse_run_facts(std::string_view text, const std::string& source) {
  const Record record(parse_json_text(source, text, kMaxDepth));
  RunFacts facts;
  facts.ringlet = record.text("/ringlet");
  facts.started = record.text("/started");
  facts.data = record.text("/data/name");
  facts.data_description = record.text("/data/description");
  facts.test_contents = record.text("/data/test_contents");
  facts.data_directory = record.text("/data/directory");
  facts.synthetic_train = record.number("/data/synthetic_train");
  facts.synthetic_test = record.number("/data/synthetic_test");
  facts.model = record.text("/model/name");
  facts.parameters = record.number("/model/parameters");
  read_run_part(record, facts);
  read_sync_part(record, facts);
  read_machine_part(record, facts);
  return facts;
}

}  // namespace ringlet::app::report
