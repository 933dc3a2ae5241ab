#include "base/trace.h"

#include <algorithm>
#include <exception>

namespace ringlet {

namespace {

Span named(std::string_view name, const char* category) {
  Span span;
  std::copy_n(name.data(), std::min(name.size(), span.name.size() - 1), span.name.data());
  span.category = category;
  return span;
}

}  // namespace

void Tracer::add(std::string_view name, const char* category, std::int64_t begin_ns,
                 std::int64_t end_ns, std::int64_t bytes, int peer) {
  Span span = named(name, category);
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.bytes = bytes;
  span.peer = peer;
  add(span, nullptr);
}

void Tracer::add(const Span& span, const ExchangeDetails* details) {
  if (limit_ != nullptr && !limit_->take()) {
    ++left_out_;
    return;
  }
  spans_.push_back(span);
  if (details != nullptr) spans_.back().details = &details_.emplace_back(*details);
}

void ScopedSpan::begin(Tracer& tracer, std::string_view name, const char* category,
                       std::int64_t bytes, int peer) {
  open_.emplace(
      Open{&tracer, name, category, bytes, peer, std::uncaught_exceptions(), now_ns(), {}});
}

void ScopedSpan::end() {
  Span span = named(open_->name, open_->category);
  span.begin_ns = open_->begin_ns;
  span.end_ns = now_ns();
  span.bytes = open_->bytes;
  span.peer = open_->peer;
  span.failed = std::uncaught_exceptions() > open_->exceptions;
  open_->tracer->add(span, open_->details ? &*open_->details : nullptr);
}

}  // namespace ringlet
