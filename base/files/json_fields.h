// Reads fields of JSON objects into plain values, strictly: the library would cut 1e300 or 5e9 down
// to an int and take true for 1.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ringlet {

/// Throws std::runtime_error "'NAME' is missing", "'NAME' is not a whole number" and the like.
template <class T>
void read_field(const nlohmann::json& object, const char* name, T& field) {
  const auto fail = [&](const char* why) {
    throw std::runtime_error("'" + std::string(name) + "' " + why);
  };
  if (!object.is_object() || !object.contains(name)) fail("is missing");
  const nlohmann::json& value = object[name];
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) fail("is neither true nor false");
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.is_number_integer()) fail("is not a whole number");
    const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<std::uint64_t>())
                                                 : std::in_range<T>(value.get<std::int64_t>());
    if (!fits) fail("is too large or too small");
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) fail("is not a number");
  } else {
    if (!value.is_string()) fail("is not a text");
  }
  value.get_to(field);
}

}  // namespace ringlet
