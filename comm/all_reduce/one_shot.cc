#include "comm/all_reduce/one_shot.h"

#include <algorithm>

namespace ringlet::comm {

OneShotAllReduce::OneShotAllReduce(Transport& transport)
    : AllReduce(transport), peers_(peers_of(transport, kName)) {}

OneShotAllReduce::~OneShotAllReduce() { peers_.settle(); }

PathCost OneShotAllReduce::path_cost(int ranks, double bytes) {
  return {1, ranks * bytes, (ranks - 1) * bytes};
}

void OneShotAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (run_short(stream, flat(data), op)) return;
  const std::int64_t window = peers_.window_bytes();
  if (window == 0 || data.bytes() <= window) return run_on_piece(stream, data, op);
  const std::int64_t longest = window / size_of(data.dtype());
  std::int64_t begin = 0;
  do {
    const std::int64_t end = std::min(data.count(), begin + longest);
    run_on_piece(stream, data.slice(begin, end), op);
    begin = end;
  } while (begin < data.count());
}

bool OneShotAllReduce::run_short(Stream& stream, const Flat& data, ReduceOp op) {
  if (size() == 1) return true;
  const std::int64_t bytes = data.bytes();
  if (!peers_.shares(stream, bytes)) return false;
  with_shared(peers_, stream, data.data, bytes,
              [&] { peers_.reduce_shared(stream, op, 0, data, 0); });
  return true;
}

void OneShotAllReduce::run_on_piece(Stream& stream, const View& piece, ReduceOp op) {
  const View window = window_for(stream, piece);
  peers_.copy(stream, piece, window);
  with_peers(peers_, stream, window, [&] {
    peers_.reduce_into(stream, op, piece);
    peers_.leave(stream);
  });
}

/// Where peer access has no windows, the strategy makes two and uses them in turn. A window that
/// has become too small is kept: others may still read it.
View OneShotAllReduce::window_for(Stream& stream, const View& piece) {
  if (peers_.window_bytes() > 0) {
    return {peers_.window().address(), piece.shape(), piece.dtype()};
  }
  std::vector<Buffer>& windows = windows_[turn_];
  turn_ = 1 - turn_;
  if (windows.empty() || windows.back().bytes() < piece.bytes()) {
    const std::int64_t doubled = windows.empty() ? 0 : 2 * windows.back().bytes();
    windows.emplace_back(stream.device(), std::max(doubled, piece.bytes()));
  }
  return {windows.back().data(), piece.shape(), piece.dtype()};
}

std::optional<std::int64_t> OneShotAllReduce::elements_sent(std::int64_t count) const {
  return (size() - 1) * count;
}

}  // namespace ringlet::comm
