#include "app/cli/version.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "app/cli/build_info.h"
#include "kernels/device.h"
#include "train/recipe/version.h"

namespace ringlet::app {

namespace {

nlohmann::json null_if_empty(std::string_view text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string version_text(bool as_json) {
  if (!as_json) return std::string("ringlet ") + train::kVersion + (kStatic ? " (static)" : "");
  const nlohmann::json json{
      {"version", train::kVersion}, {"commit", null_if_empty(kCommit)},
      {"compiler", kCompiler},      {"cuda", null_if_empty(kCuda)},
      {"static", kStatic},          {"instruction_set", name_of(detect_instruction_set())}};
  return json.dump(2);
}

std::map<std::string, std::string> build_facts() {
  std::map<std::string, std::string> facts{
      {"commit", kCommit}, {"compiler", kCompiler}, {"build_type", kBuildType}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

}  // namespace ringlet::app
