#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/cuda_stand_in/stand_in.h"

namespace ringlet::stand_in {

TeamCount::TeamCount(const char* name, unsigned* tickets, std::int64_t teams, std::int64_t size)
    : name_(name),
      tickets_(tickets),
      size_(static_cast<unsigned>(size)),
      blocks_left_(teams * size),
      own_(static_cast<std::size_t>(teams)) {}

bool TeamCount::is_last(std::int64_t team) {
  if (--blocks_left_ == static_cast<std::int64_t>(own_.size()) * size_ / 2) meet_other_lane();
  const bool is_last = ++own_[static_cast<std::size_t>(team)] == size_;
  const bool counted_last = ++tickets_[team] == size_;
  if (counted_last) tickets_[team] = 0;
  if (counted_last != is_last) {
    break_devices(std::string(name_) + " counts in tickets that another grid counts in");
  }
  return counted_last;
}

}  // namespace ringlet::stand_in
