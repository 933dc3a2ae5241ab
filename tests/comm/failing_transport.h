// A transport that fails on purpose: its k-th exchange throws instead of taking place.
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

#include "comm/transport.h"

namespace ringlet::comm {

class FailingTransport final : public Transport {
 public:
  /// Exchange number `fails_at` (from 0) throws; kNever for none.
  static constexpr int kNever = -1;

  FailingTransport(Transport& inner, int fails_at)
      : Transport(inner.world()), inner_(inner), fails_at_(fails_at) {}

  int exchanges() const { return exchanges_; }

  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return inner_.root_cause(); }
  FlightRecorder& recorder() override { return inner_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return inner_.look_at(other); }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override {
    if (exchanges_++ == fails_at_) throw std::runtime_error("the cable was cut");
    inner_.set_timeout(timeout_seconds());
    inner_.exchange(stream, to, out, from, in, combine);
  }

 private:
  Transport& inner_;
  int fails_at_;
  int exchanges_ = 0;
};

}  // namespace ringlet::comm
