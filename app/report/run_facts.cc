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

/// Null where there is none.
const json* at(const json& root, const char* path) {
  const json::json_pointer pointer(path);
  return root.contains(pointer) ? &root.at(pointer) : nullptr;
}

std::string text_at(const json& root, const char* path) {
  const json* found = at(root, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

double number_at(const json& root, const char* path) {
  const json* found = at(root, path);
  const double number =
      found != nullptr && found->is_number() ? found->get<double>() : RunFacts::kNone;
  return std::abs(number) < kMostCounted ? number : RunFacts::kNone;
}

std::string plain(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void append(std::string& list, const std::string& entry) {
  if (!list.empty()) list += ", ";
  list += entry;
}

}  // namespace

RunFacts::RunFacts() : root_(std::make_shared<const json>()) {}

RunFacts::RunFacts(std::string_view text, const std::string& source)
    : root_(std::make_shared<const json>(parse_json_text(source, text, kMaxDepth))) {}

std::string RunFacts::text(const char* path) const { return text_at(*root_, path); }
double RunFacts::number(const char* path) const { return number_at(*root_, path); }

const json& RunFacts::list(const char* path) const {
  static const json none = json::array();
  const json* found = at(*root_, path);
  return found != nullptr && found->is_structured() ? *found : none;
}

std::string RunFacts::ringlet() const {
  std::string versions = text("/ringlet");
  for (const auto& [what, version] : list("/machine/versions").items()) {
    if (version.is_string()) append(versions, what + " " + plain(version));
  }
  return versions;
}

std::string RunFacts::devices() const {
  std::string names;
  for (const json& device : list("/run/devices")) append(names, plain(device));
  return names;
}

std::string RunFacts::gpus() const {
  std::string names;
  for (const json& gpu : list("/machine/gpus")) {
    if (!gpu.is_object()) continue;
    append(names, fmt::format("{} ({})", plain(gpu.value("name", json("GPU"))),
                              plain(gpu.value("device", json("")))));
  }
  return names;
}

double RunFacts::replicas() const {
  const std::size_t ranks = list("/run/batch_of_rank").size();
  return ranks > 0 ? static_cast<double>(ranks) : kNone;
}

double RunFacts::batch() const {
  double samples = 0;
  for (const json& share : list("/run/batch_of_rank")) {
    samples += share.is_number() ? share.get<double>() : 0;
  }
  return std::isfinite(replicas()) ? samples : kNone;
}

std::vector<RunFacts::Sum> RunFacts::sums() const {
  std::vector<Sum> sums;
  for (const json& bucket : list("/sync/buckets")) {
    if (!bucket.is_object()) continue;
    sums.push_back({.name = text_at(bucket, "/name"),
                    .strategy = text_at(bucket, "/strategy"),
                    .bytes = number_at(bucket, "/bytes"),
                    .predicted_seconds = number_at(bucket, "/predicted_seconds"),
                    .taken_seconds = number_at(bucket, "/taken_seconds")});
  }
  return sums;
}

std::vector<RunFacts::Stage> RunFacts::stages() const {
  std::vector<Stage> stages;
  for (const json& stage : list("/pipeline/stages")) {
    if (!stage.is_object()) continue;
    stages.push_back({text_at(stage, "/layers"), text_at(stage, "/device")});
  }
  return stages;
}

std::vector<RunFacts::Set> RunFacts::verification_sets() const {
  std::vector<Set> sets;
  for (const json& set : list("/verification")) {
    if (!set.is_object()) continue;
    sets.push_back({text_at(set, "/name"), text_at(set, "/file"), text_at(set, "/hash")});
  }
  return sets;
}

}  // namespace ringlet::app::report
