// What the fuzz targets share. Each target is one file, NAME_fuzz.cc, and gives
//   - LLVMFuzzerTestOneInput: reads the bytes with one of the product's readers. A damaged input
//     has to end in the reader's own error, with one line of message. Whatever is read has to hold
//     its promises. Anything else aborts, which libFuzzer records.
//   - seeds(): whole inputs to start from, so that no files are kept for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::fuzz {

std::vector<std::string> seeds();

/// Aborts unless `holds`.
void promise(bool holds, const char* what);

/// Aborts unless `message` is one line of printable text, and no longer than one may be.
void check_message(const std::string& message);

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs `action`; of exceptions only an `E` may leave it. True when none did.
template <class E, class Action>
bool reads(Action action) {
  try {
    action();
    return true;
  } catch (const E& error) {
    check_message(error.what());
    return false;
  }
}

}  // namespace ringlet::fuzz
