#include "comm/core/transport.h"

#include <cstddef>
#include <functional>

#include "base/error.h"

namespace ringlet::comm {

namespace {

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  const auto* const a_begin = static_cast<const std::byte*>(a);
  const auto* const b_begin = static_cast<const std::byte*>(b);
  const std::less<const std::byte*> before;
  return before(a_begin, b_begin + b_bytes) && before(b_begin, a_begin + a_bytes);
}

}  // namespace

Combine combine_of(ReduceOp op) {
  if (op == ReduceOp::min) return Combine::min;
  if (op == ReduceOp::max) return Combine::max;
  return Combine::add;
}

const char* name_of(Combine combine) {
  constexpr const char* kNames[] = {"copy", "add", "min", "max"};
  return kNames[static_cast<int>(combine)];
}

ReduceOp operation_of(Combine combine) {
  if (combine == Combine::min) return ReduceOp::min;
  if (combine == Combine::max) return ReduceOp::max;
  return ReduceOp::sum;
}

void Transport::exchange(Stream& stream, int to, ConstView out, int from, View in,
                         Combine combine) {
  const auto is_peer = [this](int other) {
    return other == kNobody || (0 <= other && other < size() && other != rank());
  };
  require(is_peer(to) && is_peer(from), "exchange", "a peer is another rank of the world");
  require(from == kNobody || combine == Combine::copy || in.dtype() != DType::u8, "exchange",
          "bytes cannot be reduced, but f32, f16, bf16 and i32 can");
  const std::int64_t bytes = to == kNobody ? 0 : out.bytes();
  const std::int64_t in_bytes = from == kNobody ? 0 : in.bytes();
  const bool in_place = combine != Combine::copy && in.address() == out.address();
  require(to == kNobody || from == kNobody || in_place ||
              !overlap(out.address(), bytes, in.address(), in_bytes),
          "exchange", "what is sent and what is received overlap");
  const bool receives_only = to == kNobody && from != kNobody;
  const char* what = receives_only ? "receive" : from == kNobody ? "send" : "exchange";
  ScopedSpan span(stream.tracer(), what, "exchange", receives_only ? in_bytes : bytes,
                  receives_only ? from : to);
  if (span.traces()) {
    ExchangeDetails& details = span.details();
    details.call = recorder().current().sequence;
    details.axis = line_.axis;
    if (to != kNobody) details.out_at = offset_of(out);
    if (from != kNobody) {
      details.from = from;
      details.in_at = offset_of(in);
      details.in_bytes = in_bytes;
      details.op = name_of(combine);
    }
  }
  {
    const FlightRecorder::Exchanging exchanging(recorder(), {to, from, bytes, in_bytes});
    do_exchange(stream, to, out, from, in, combine);
  }
  count_moved(bytes);
}

const RankNames& Transport::names() const {
  static const RankNames numbers;
  return numbers;
}

void Transport::set_timeout(double seconds) {
  require(seconds > 0, "Transport::set_timeout", "a time-out is more than 0 seconds");
  timeout_seconds_ = seconds;
}

std::int64_t Transport::offset_of(const ConstView& part) const {
  if (subject_ == nullptr || part.bytes() == 0) return -1;
  const auto begin = reinterpret_cast<std::uintptr_t>(subject_);
  const auto at = reinterpret_cast<std::uintptr_t>(part.address());
  const auto length = static_cast<std::uintptr_t>(subject_bytes_);
  return begin <= at && at < begin + length ? static_cast<std::int64_t>(at - begin) : -1;
}

}  // namespace ringlet::comm
