// PartTransport: some ranks of another transport, as a world of their own. Its rank i is the i-th
// of `ranks`. Every one of these has one; the others take no part. Exchanges are the other
// transport's, which traces and records them with its own ranks.
#pragma once

#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

class PartTransport : public Transport {
 public:
  /// `ranks` of `whole` are in the same order everywhere and hold its own. `costs`: as
  /// typical_costs(). `whole` outlives this.
  PartTransport(Transport& whole, std::vector<int> ranks, const CostModel& costs);

  void exchange(Stream& stream, int to, ConstView out, int from, View in,
                Combine combine = Combine::copy) override {
    do_exchange(stream, to, out, from, in, combine);
    if (to != kNobody) count_moved(out.bytes());
  }
  void abort(const std::string& reason) noexcept override { whole_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return whole_.root_cause(); }
  FlightRecorder& recorder() override { return whole_.recorder(); }
  std::optional<RankStatus> look_at(int rank) const override { return whole_.look_at(at(rank)); }
  CostModel typical_costs() const override { return costs_; }
  bool waits_in_kernels() const override { return whole_.waits_in_kernels(); }
  const RankNames& names() const override { return whole_.names(); }
  Transport& whole() override { return whole_.whole(); }
  int in_world(int rank) const override { return whole_.in_world(at(rank)); }
  void set_timeout(double seconds) override {
    Transport::set_timeout(seconds);
    whole_.set_timeout(seconds);
  }
  void set_subject(const ConstView& data) override { whole_.set_subject(data); }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override {
    whole_.exchange(stream, at(to), out, at(from), in, combine);
  }

 private:
  int at(int rank) const {
    return rank == kNobody ? kNobody : ranks_[static_cast<std::size_t>(rank)];
  }

  Transport& whole_;
  std::vector<int> ranks_;
  CostModel costs_;
};

}  // namespace ringlet::comm
