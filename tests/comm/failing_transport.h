// A transport that fails on purpose: its k-th exchange, or its k-th access to other ranks' memory,
// throws instead of happening.
#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>

#include "comm/core/transport.h"

namespace ringlet::comm {

/// Calls count() before every operation that may block.
class CountedPeerAccess final : public PeerAccess {
 public:
  CountedPeerAccess(PeerAccess& inner, std::function<void()> count)
      : inner_(inner), count_(std::move(count)) {}

  std::int64_t window_bytes() const override { return inner_.window_bytes(); }
  View window() override { return inner_.window(); }
  void open(Stream& stream, const View& mine) override {
    count_();
    inner_.open(stream, mine);
  }
  bool open_where_all_can(Stream& stream, const View& mine) override {
    count_();
    return inner_.open_where_all_can(stream, mine);
  }
  void meet(Stream& stream) override {
    count_();
    inner_.meet(stream);
  }
  void close(Stream& stream) override {
    count_();
    inner_.close(stream);
  }
  void leave(Stream& stream) override { inner_.leave(stream); }
  void abandon(Stream& stream, const char* reason) noexcept override {
    inner_.abandon(stream, reason);
  }
  void settle() noexcept override { inner_.settle(); }
  void copy(Stream& stream, const ConstView& x, const View& y) override {
    inner_.copy(stream, x, y);
  }
  void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override {
    count_();
    inner_.reduce_for_all(stream, op, begin, end);
  }
  void reduce_into(Stream& stream, ReduceOp op, const View& mine) override {
    count_();
    inner_.reduce_into(stream, op, mine);
  }
  bool shares(const Stream& stream, std::int64_t bytes) const override {
    return inner_.shares(stream, bytes);
  }
  void share(Stream& stream, const void* data, std::int64_t bytes) override {
    count_();
    inner_.share(stream, data, bytes);
  }
  void reduce_shared(Stream& stream, ReduceOp op, std::int64_t begin, const Flat& mine,
                     int first) override {
    count_();
    inner_.reduce_shared(stream, op, begin, mine, first);
  }
  void read_shared(Stream& stream, int rank, std::int64_t begin, const View& mine) override {
    count_();
    inner_.read_shared(stream, rank, begin, mine);
  }
  void reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) override {
    count_();
    inner_.reduce_part(stream, op, begin, mine);
  }
  void reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override {
    count_();
    inner_.reduce_own(stream, op, begin, end);
  }
  void read(Stream& stream, int rank, std::int64_t begin, const View& mine) override {
    count_();
    inner_.read(stream, rank, begin, mine);
  }
  void reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                 std::int64_t end) override {
    count_();
    inner_.reduce_to(stream, op, root, begin, end);
  }
  void spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) override {
    count_();
    inner_.spread(stream, root, begin, end);
  }

 private:
  PeerAccess& inner_;
  std::function<void()> count_;
};

class FailingTransport final : public Transport {
 public:
  /// Exchange number `fails_at` (from 0) throws; kNever for none.
  static constexpr int kNever = -1;

  FailingTransport(Transport& inner, int fails_at)
      : Transport(inner.world()), inner_(inner), fails_at_(fails_at) {
    if (PeerAccess* access = inner.peer_access()) {
      peers_ = std::make_unique<CountedPeerAccess>(*access, [this] { count(); });
    }
  }

  int exchanges() const { return exchanges_; }
  /// On the rank's thread.
  void fail_next() { fails_at_ = exchanges_; }

  int mute = -1;  ///< a rank that does not answer
  /// Called before each exchange; what it throws is thrown instead.
  std::function<void(int to, int from)> on_exchange = [](int, int) {};

  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return inner_.root_cause(); }
  FlightRecorder& recorder() override { return inner_.recorder(); }
  CostModel typical_costs() const override { return inner_.typical_costs(); }
  std::optional<RankStatus> look_at(int other) const override {
    if (other == mute) return {};
    return inner_.look_at(other);
  }
  PeerAccess* peer_access() override { return peers_.get(); }
  const RankNames& names() const override { return inner_.names(); }
  int machine_of(int other) const override { return inner_.machine_of(other); }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override {
    count();
    on_exchange(to, from);
    inner_.exchange(stream, to, out, from, in, combine);
  }

 private:
  void count() {
    if (exchanges_++ == fails_at_) throw std::runtime_error("the cable was cut");
    inner_.set_timeout(timeout_seconds());
  }

  Transport& inner_;
  int fails_at_;
  int exchanges_ = 0;
  std::unique_ptr<PeerAccess> peers_;
};

}  // namespace ringlet::comm
