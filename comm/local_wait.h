// LocalWait: how a rank of a LocalGroup waits for another one, and how it fails.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "comm/local_transport.h"
#include "comm/timeout_report.h"

namespace ringlet::comm {

class LocalWait {
 public:
  /// For the rank of `transport`, which is of `group`; both outlive this.
  LocalWait(LocalGroup& group, Transport& transport) : group_(group), transport_(transport) {}

  /// Returns when ready() holds, which reads atomics sequentially consistently. Throws Aborted when
  /// the group is given up, TimeoutError, having given it up, when `peer` has not come in time.
  template <class Ready>
  void wait(int peer, Ready ready) {
    constexpr double kLongest = 1e9;  // seconds, some thirty years: what nanoseconds can hold
    const std::chrono::nanoseconds timeout(
        static_cast<std::int64_t>(std::min(transport_.timeout_seconds(), kLongest) * 1e9));
    const bool in_time =
        group_.doorbell(transport_.rank())
            .wait([this, &ready] { return ready() || group_.aborted(); }, group_.spin_, timeout);
    throw_if_aborted();
    if (!in_time) fail<TimeoutError>(explain_timeout(transport_, peer));
  }

  void throw_if_aborted() const {
    if (group_.aborted()) throw Aborted(*group_.root_cause());
  }

  template <class Failure>
  [[noreturn]] void fail(const std::string& message) {
    if (group_.abort(transport_.rank(), message)) throw Failure(message);
    throw Aborted(*group_.root_cause());
  }

 private:
  LocalGroup& group_;
  Transport& transport_;
};

}  // namespace ringlet::comm
