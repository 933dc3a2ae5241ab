#include "app/cli/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

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

/// The number that the whole of `text` says.
template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return {};
  return value;
}

template <class T>
CLI::Validator whole_number_of(T min, T max, const std::string& wanted) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<T> value = parse<T>(text);
        if (!value || *value < min || *value > max) {
          return fmt::format("'{}' is not {}", text, wanted);
        }
        text = fmt::format("{}", *value);  // CLI11 takes 010 for 8
        return {};
      },
      "");
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
  return whole_number_of<std::int64_t>(min, max,
                                       fmt::format("a whole number from {} to {}", min, max));
}

CLI::Validator seed_number() {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  return whole_number_of<std::uint64_t>(0, kMax, fmt::format("a whole number from 0 to {}", kMax));
}

CLI::Validator number(double min, double max) {
  const std::string wanted = max == std::numeric_limits<double>::max()
                                 ? fmt::format("a number of at least {}", min)
                                 : fmt::format("a number from {} to {}", min, max);
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        const std::optional<double> value = parse<double>(text);
        const bool good = value && std::isfinite(*value) && *value >= min && *value <= max;
        return good ? "" : fmt::format("'{}' is not {}", text, wanted);
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
        if (data::is_dataset(name)) return {};
        const std::vector<std::string> known = data::dataset_names();
        return fmt::format("'{}' is neither {} nor a folder{}", name, fmt::join(known, " nor "),
                           did_you_mean(name, known));
      },
      "");
}

}  // namespace ringlet::app
