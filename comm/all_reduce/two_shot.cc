#include "comm/all_reduce/two_shot.h"

#include <algorithm>

#include "comm/all_reduce/parts.h"

namespace ringlet::comm {

TwoShotAllReduce::TwoShotAllReduce(Transport& transport)
    : AllReduce(transport), peers_(peers_of(transport, kName)) {}

PathCost TwoShotAllReduce::path_cost(int ranks, double bytes) {
  const double p = ranks, part = bytes / p;
  return {2, 2 * (p - 1) * part, (p - 1) * part};
}

void TwoShotAllReduce::run(Stream& stream, View data, ReduceOp op) {
  if (size() == 1) return;
  if (!peers_.can_show(data)) return run_through_windows(stream, data, op);
  with_peers(peers_, stream, data, [&] {
    reduce_in_place(stream, data, op);
    peers_.close(stream);
  });
}

/// Each rank reduces as much as in one part, but cut into blocks: in each round every rank has one
/// block, and the remainder comes first. So all ranks find their share of what the caches hold. The
/// rounds run backwards: what was written last is still in the caches, and what is reduced last
/// will be there when the result is read from its beginning.
void TwoShotAllReduce::reduce_in_place(Stream& stream, const View& data, ReduceOp op) {
  constexpr std::int64_t kBlock = 128 << 10;  // elements
  const std::int64_t count = data.count(), p = size(), r = rank();
  const auto begin_of = [count, p](std::int64_t part) {
    return part_begin(count, static_cast<int>(p), static_cast<int>(part));
  };
  // A GPU reduces all of its part at once.
  const std::int64_t rounds = stream.in_order_with_host() ? count / p / kBlock : 0;
  const std::int64_t in_rounds = rounds * kBlock;  // of each rank
  peers_.reduce_for_all(stream, op, p * in_rounds + begin_of(r) - r * in_rounds,
                        p * in_rounds + begin_of(r + 1) - (r + 1) * in_rounds);
  for (std::int64_t round = rounds - 1; round >= 0; --round) {
    const std::int64_t block = (round * p + r) * kBlock;
    peers_.reduce_for_all(stream, op, block, block + kBlock);
  }
}

/// A window has a slot for each rank's part.
void TwoShotAllReduce::run_through_windows(Stream& stream, const View& data, ReduceOp op) {
  constexpr std::int64_t kAlignment = 256;
  const std::int64_t slot = peers_.window_bytes() / size() / kAlignment * kAlignment;
  const std::int64_t longest = slot / size_of(data.dtype());
  const std::int64_t longest_part = longest_part_of(data.count(), size());
  std::int64_t begin = 0;
  do {
    run_on_pieces(stream, data, op, begin, std::min(longest, longest_part - begin));
    begin += longest;
  } while (begin < longest_part);
}

/// Two-shot on the elements from `begin` on of every rank's part, at most `longest` of each.
void TwoShotAllReduce::run_on_pieces(Stream& stream, const View& data, ReduceOp op,
                                     std::int64_t begin, std::int64_t longest) {
  const int p = size();
  const auto piece_of = [&](int of) {
    const std::int64_t end = part_begin(data.count(), p, of + 1);
    const std::int64_t from = std::min(part_begin(data.count(), p, of) + begin, end);
    return data.slice(from, std::min(from + longest, end));
  };
  const auto others = [p, this](auto visit) {  // the next rank first: not all ask the same one
    for (int step = 1; step < p; ++step) visit((rank() + step) % p);
  };
  const View window(peers_.window().address(), {p * longest}, data.dtype());
  others([&](int other) {
    const View piece = piece_of(other);
    const std::int64_t slot = other * longest;
    peers_.copy(stream, piece, window.slice(slot, slot + piece.count()));
  });
  with_peers(peers_, stream, window, [&] {
    peers_.reduce_part(stream, op, rank() * longest, piece_of(rank()));
    peers_.meet(stream);
    others([&](int other) { peers_.read(stream, other, other * longest, piece_of(other)); });
    peers_.leave(stream);
  });
}

std::optional<std::int64_t> TwoShotAllReduce::elements_sent(std::int64_t count) const {
  const std::int64_t part =
      part_begin(count, size(), rank() + 1) - part_begin(count, size(), rank());
  return 2 * (size() - 1) * part;
}

}  // namespace ringlet::comm
