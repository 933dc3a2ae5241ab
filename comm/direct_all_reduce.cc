#include "comm/direct_all_reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/parts.h"
#include "kernels/error.h"

namespace ringlet::comm {

namespace {

PeerAccess& peers_of(Transport& transport, const char* strategy) {
  if (transport.size() > kMaxReduced) {
    throw ContractError(fmt::format("--sync {} is for at most {} ranks, and there are {}", strategy,
                                    kMaxReduced, transport.size()));
  }
  if (PeerAccess* peers = transport.peer_access()) return *peers;
  throw ContractError(
      fmt::format("--sync {} needs ranks that reach each other's memory: the "
                  "threads of one process, with --transport local",
                  strategy));
}

}  // namespace

OneShotAllReduce::OneShotAllReduce(Transport& transport)
    : AllReduce(transport), peers_(peers_of(transport, kName)) {}

OneShotAllReduce::~OneShotAllReduce() { peers_.settle(); }

void OneShotAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (size() == 1) return;
  const View window = window_for(stream, data);
  peers_.copy(stream, data, window);
  with_peers(peers_, stream, window, [&] {
    peers_.reduce_into(stream, op, data);
    peers_.leave(stream);
  });
}

/// The windows are used in turn. One that has become too small is kept: others may still read it.
View OneShotAllReduce::window_for(Stream& stream, const View& data) {
  std::vector<Buffer>& windows = windows_[turn_];
  turn_ = 1 - turn_;
  if (windows.empty() || windows.back().bytes() < data.bytes()) {
    const std::int64_t doubled = windows.empty() ? 0 : 2 * windows.back().bytes();
    windows.emplace_back(stream.device(), std::max(doubled, data.bytes()));
  }
  return {windows.back().data(), data.shape(), data.dtype()};
}

std::optional<std::int64_t> OneShotAllReduce::elements_sent(std::int64_t count) const {
  return (size() - 1) * count;
}

TwoShotAllReduce::TwoShotAllReduce(Transport& transport)
    : AllReduce(transport), peers_(peers_of(transport, kName)) {}

void TwoShotAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (size() == 1) return;
  with_peers(peers_, stream, data, [&] {
    peers_.reduce_for_all(stream, op, part_begin(data.count(), size(), rank()),
                          part_begin(data.count(), size(), rank() + 1));
    peers_.close(stream);
  });
}

std::optional<std::int64_t> TwoShotAllReduce::elements_sent(std::int64_t count) const {
  const std::int64_t part =
      part_begin(count, size(), rank() + 1) - part_begin(count, size(), rank());
  return 2 * (size() - 1) * part;
}

}  // namespace ringlet::comm
