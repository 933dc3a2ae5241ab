// AnswerWatch: while a rank waits without a time-out, looks whether the others still answer.
//
// A rank that works answers however long its work takes: another thread of its process does that. A
// process that is stopped or hangs as a whole does not. The watch then aborts the transport.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "comm/core/transport.h"

namespace ringlet::comm {

class AnswerWatch {
 public:
  /// Aborts `transport`, which outlives this, when a rank has not answered for so many seconds.
  /// `what` is waited for, as of a collective.
  AnswerWatch(Transport& transport, double seconds, std::string what);

 private:
  void watch(const std::stop_token& stop);

  Transport& transport_;
  double seconds_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace ringlet::comm
