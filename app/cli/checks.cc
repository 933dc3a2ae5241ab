#include "app/cli/checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "app/cli/suggest.h"
#include "base/error.h"
#include "data/open_dataset.h"
#include "kernels/device.h"

namespace ringlet::app {

namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  std::string meant = ours_for(word, known);
  if (meant.empty()) meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& choices) {
  return CLI::Validator(
      [choices](const std::string& word) -> std::string {
        for (const std::string& choice : choices) {
          if (word == choice) return {};
        }
        return fmt::format("'{}' is not one of {}{}", word, fmt::join(choices, ", "),
                           did_you_mean(word, choices));
      },
      "");
}

CLI::Validator whole_number(std::int64_t min, std::int64_t max) {
  const train::NumberRange range{.min = static_cast<double>(min), .max = static_cast<double>(max)};
  return number_of(train::OptionRow("", std::int64_t{}, {.range = range}));
}

CLI::Validator number_of(train::OptionRow row) {
  const bool is_whole = row.type == train::OptionValue(std::int64_t{}).index();
  if (row.open_at_zero && is_whole) row.range.min = 1;
  if (row.open_at_zero && !is_whole) row.range.above_min = true;
  return CLI::Validator(
      [row](std::string& text) -> std::string {
        const auto value = row.parse(text);
        if (!value) return fmt::format("'{}' {}", text, row.refusal(text));
        if (!std::holds_alternative<double>(*value)) text = train::text_of(*value);
        return {};
      },
      "");
}

CLI::Validator device_name() {
  return CLI::Validator(
      [](const std::string& name) -> std::string {
        try {
          if (DeviceId::parse(name).kind != DeviceKind::meta) return {};
        } catch (const DeviceError& error) {
          return error.what() + did_you_mean(name, {"cpu", "cuda"});
        }
        return fmt::format("'{}' has no memory to train in; write cpu, cpu:0 or cuda:1", name);
      },
      "");
}

CLI::Validator data_name() {
  return CLI::Validator(
      [](const std::string& name) -> std::string {
        if (const data::NamedDataset* named = data::find_dataset(name); named && named->fault) {
          const std::string fault = named->fault(name.substr(named->name.size() + 1));
          return fault.empty() ? "" : fmt::format("'{}': {}", name, fault);
        }
        if (data::is_dataset(name)) return {};
        std::error_code error;
        if (std::filesystem::exists(name, error)) {
          return fmt::format(
              "'{}' is a file, and no .rec; name a folder with a folder for each class", name);
        }
        if (name.find('/') != std::string::npos) {
          return fmt::format("there is no folder and no .rec '{}'; correct the path", name);
        }
        const std::vector<std::string> known = data::dataset_names();
        return fmt::format("'{}' is neither {} nor a folder nor a .rec{}", name,
                           fmt::join(known, " nor "), did_you_mean(name, known));
      },
      "");
}

}  // namespace ringlet::app
