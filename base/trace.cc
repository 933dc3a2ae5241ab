#include "base/trace.h"

#include <algorithm>

namespace ringlet {

void Tracer::add(std::string_view name, const char* category, std::int64_t begin_ns,
                 std::int64_t end_ns, std::int64_t bytes, int peer,
                 const ExchangeDetails& details) {
  if (limit_ != nullptr && !limit_->take()) {
    ++left_out_;
    return;
  }
  Span span;
  std::copy_n(name.data(), std::min(name.size(), span.name.size() - 1), span.name.data());
  span.category = category;
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.bytes = bytes;
  span.peer = peer;
  span.details = details;
  spans_.push_back(span);
}

}  // namespace ringlet
