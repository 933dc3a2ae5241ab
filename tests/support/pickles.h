// Pickles for tests, put together from their opcodes.
#pragma once

#include <string>
#include <vector>

#include "tests/support/records.h"

namespace ringlet::testing {

inline std::string pickled_bytes(const std::string& bytes) {
  return "B" + little_endian(bytes.size(), 4) + bytes;
}

inline std::string pickled_list(const std::vector<std::string>& items) {
  std::string pickle = "](";
  for (const std::string& item : items) pickle += item;
  return pickle + "e";
}

/// A tuple of pictures and answers, in protocol 3.
inline std::string pickled_pairs(const std::vector<std::string>& pictures,
                                 const std::vector<bool>& same) {
  std::vector<std::string> items, answers;
  for (const std::string& picture : pictures) items.push_back(pickled_bytes(picture));
  for (const bool answer : same) answers.emplace_back(answer ? "\x88" : "\x89");
  return "\x80\x03" + pickled_list(items) + pickled_list(answers) + "\x86.";
}

}  // namespace ringlet::testing
