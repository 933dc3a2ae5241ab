// Environment: the variables that a launcher has set, read as text or as whole numbers.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include "base/error.h"

namespace ringlet::comm {

/// The value of an environment variable; nothing where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const {
    return name.empty() ? std::nullopt : lookup_(name);
  }
  std::optional<int> number(const std::string& name) const {
    const std::optional<std::string> value = text(name);
    if (!value) return {};
    int number = 0;
    const char* end = value->data() + value->size();
    const auto [stopped, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc() || stopped != end || number < 0) {
      throw ContractError(fmt::format("{} is '{}', which is not a whole number", name, *value));
    }
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

}  // namespace ringlet::comm
