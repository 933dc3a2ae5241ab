#include "comm/schedule/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "comm/schedule/recording_peers.h"
#include "kernels/meta_device.h"

namespace ringlet::comm {

namespace {

/// One rank's, while it is recorded.
class RecordingTransport final : public Transport {
 public:
  RecordingTransport(const World& world, const Network& network, const Recording& what,
                     Device& device, Schedule& schedule, RankSchedule& into)
      : Transport(world),
        network_(network),
        schedule_(schedule),
        into_(into),
        keeps_addresses_(what.addresses) {
    if (world.machines == 1) peers_.emplace(into, device, what.window_bytes);
  }

  void abort(const std::string& /*reason*/) noexcept override {}
  std::optional<RootCause> root_cause() const override { return std::nullopt; }
  FlightRecorder& recorder() override { return recorder_; }
  std::optional<RankStatus> look_at(int /*rank*/) const override { return std::nullopt; }
  PeerAccess* peer_access() override { return peers_ ? &*peers_ : nullptr; }
  int machine_of(int rank) const override { return network_.machine(rank); }
  CostModel typical_costs() const override {
    return world().machines == 1 ? network_.inside : network_.between;
  }
  CostModel typical_costs_inside() const override { return network_.inside; }

 protected:
  void do_exchange(Stream& /*stream*/, int to, ConstView out, int from, View in,
                   Combine combine) override {
    if (to == kNobody && from == kNobody) return;
    Step step{.to = to, .from = from, .combine = combine};
    if (to != kNobody) step.out = schedule_.number_of(out.bytes());
    if (from != kNobody) step.in = schedule_.number_of(in.bytes());
    into_.steps.push_back(step);
    if (!keeps_addresses_) return;
    into_.addresses.resize(into_.steps.size());
    if (to != kNobody) into_.addresses.back().out = address_of(out);
    if (from != kNobody) into_.addresses.back().in = address_of(in);
  }

 private:
  const Network& network_;
  Schedule& schedule_;
  RankSchedule& into_;
  bool keeps_addresses_;
  FlightRecorder recorder_;
  std::optional<RecordingPeers> peers_;
};

void note_use(RankSchedule& rank) {
  rank.steps.push_back(
      {.to = static_cast<std::int32_t>(rank.touches.size()), .kind = StepKind::touch});
  rank.touches.push_back({.kind = Touch::Kind::use, .mine = rank.data});
}

void record_rank(Schedule& schedule, const MakeAllReduce& make, const World& world,
                 const Network& network, const Recording& what, Device& device) {
  const Buffer memory(device, what.count * size_of(what.dtype));
  const View data(memory.data(), {what.count}, what.dtype);
  RankSchedule& rank = schedule.ranks.emplace_back();
  rank.data = range_of(data);
  if (what.addresses) note_use(rank);
  {
    RecordingTransport transport(world, network, what, device, schedule, rank);
    const std::unique_ptr<AllReduce> strategy = make(transport);
    for (int run = 0; run < what.runs; ++run) {
      strategy->run(device.communication(), data, what.op);
      if (what.addresses) note_use(rank);
    }
  }
  if (what.addresses) rank.addresses.resize(rank.steps.size());
  rank.steps.shrink_to_fit();
}

}  // namespace

Schedule record(const MakeAllReduce& make, const Network& network, const Recording& what) {
  network.check();
  require(what.count >= 0, "record", "there is no length below 0");
  require(!what.addresses || network.ranks <= kMostAddressed, "record",
          "addresses are kept of at most 64 ranks");
  constexpr std::int64_t kLeastOfRank = 256;
  require(what.window_bytes == 0 || what.window_bytes >= kLeastOfRank * network.ranks, "record",
          "a window has 256 bytes for each rank at least");
  MetaDevice device;
  Schedule schedule;
  schedule.ranks.reserve(static_cast<std::size_t>(network.ranks));
  for (int rank = 0; rank < network.ranks; ++rank) {
    record_rank(schedule, make, network.world_of(rank), network, what, device);
  }
  return schedule;
}

std::string why_not_recorded(const Strategy& strategy, const Network& network) {
  if (needs_engine(strategy.needs)) {
    return fmt::format("{} is a library's own, which does not say what it sends", strategy.name);
  }
  if (strategy.needs != Needs::peer_access) return {};
  if (network.machines() > 1) {
    return fmt::format("{} needs ranks that reach each other's memory, on one machine",
                       strategy.name);
  }
  if (network.ranks <= kMaxReduced) return {};
  return fmt::format("{} is for at most {} ranks", strategy.name, kMaxReduced);
}

}  // namespace ringlet::comm
