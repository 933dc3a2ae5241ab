// What a chapter's file has of the course itself; all else is the product's own.
#pragma once

#include <stdexcept>

namespace ringlet::learn {

/// Thrown by a file in which nothing is written yet.
class NotWrittenYet : public std::runtime_error {
 public:
  NotWrittenYet() : std::runtime_error("nothing is written yet") {}
};

/// Takes the names that the file has not used yet, or the first thing to see would be a warning.
template <class... Unused>
[[noreturn]] void not_written_yet(const Unused&... /*unused*/) {
  throw NotWrittenYet();
}

}  // namespace ringlet::learn
