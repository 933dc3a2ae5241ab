#include "comm/transport/peer_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/trace.h"
#include "comm/transport/peer_memory.h"

namespace ringlet::comm {

PeerRanges::PeerRanges(Transport& transport, const MemoryOperations& operations,
                       std::int64_t stream_from)
    : transport_(transport), operations_(operations), stream_from_(stream_from) {
  const auto ranks = static_cast<std::size_t>(transport.size());
  ranges_.resize(ranks);
  whole_.resize(ranks);
  shared_.resize(ranks);
  sources_.resize(ranks);
  xs_.reserve(ranks);
  ys_.reserve(ranks);
}

void PeerRanges::reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) {
  take_parts(begin, end);
  ys_.clear();
  for (const View& range : ranges_) ys_.push_back(range.slice(begin, end));
  const std::int64_t bytes_of_all = transport_.size() * ranges_[0].bytes();
  const bool streams = transport_.size() > 1 && bytes_of_all > stream_from_;
  reduce(stream, op, xs_, ys_, all(), streams ? Stores::streaming : Stores::cached,
         2 * (transport_.size() - 1) * ys_[0].bytes());
}

void PeerRanges::copy_shared(Stream& stream, const void* data, std::int64_t bytes, std::byte* to) {
  if (data == nullptr) return;
  ScopedSpan span(stream.tracer(), "copy", "exchange", bytes);
  if (span.traces()) note_details(span, {data, {bytes}, DType::u8}, own(), own());
  std::memcpy(to, data, static_cast<std::size_t>(bytes));
}

void PeerRanges::copy(Stream& stream, const ConstView& x, const View& y) {
  ScopedSpan span(stream.tracer(), "copy", "exchange", x.bytes());
  note_details(span, x, own(), own());
  if (stream.in_order_with_host()) {
    copy_across(y.data(), x.data(), x.bytes());
  } else {
    operations_.copy(stream, x, y);
  }
}

void PeerRanges::reduce_into(Stream& stream, ReduceOp op, const View& mine) {
  whole_[static_cast<std::size_t>(transport_.rank())] = mine;
  reduce(stream, op, whole_, {&mine, 1}, own(), Stores::cached,
         (transport_.size() - 1) * mine.bytes());
}

void PeerRanges::reduce_shared(Stream& stream, ReduceOp op, std::int64_t begin, const Flat& mine,
                               int first) {
  const int ranks = transport_.size();
  const std::int64_t moved = (ranks - 1) * mine.bytes();
  ScopedSpan span(stream.tracer(), "direct", "exchange", moved);
  if (span.traces()) note_reduction(span, op, mine.view(), own());
  const std::int64_t offset = begin * size_of(mine.dtype);
  for (int rank = first; const void*& source : sources_) {
    source =
        rank == transport_.rank() ? mine.data : shared_[static_cast<std::size_t>(rank)] + offset;
    if (++rank == ranks) rank = 0;
  }
  reduce_arrays(stream, op, {sources_, mine.data, mine.dtype, mine.count}, {.divisor = ranks});
  transport_.count_moved(moved);
}

void PeerRanges::read_shared(Stream& stream, int rank, std::int64_t begin, const View& mine) {
  const std::int64_t bytes = mine.bytes();
  ScopedSpan span(stream.tracer(), "read", "exchange", bytes, rank);
  if (span.traces()) note_details(span, mine, {rank, rank + 1}, own());
  const std::byte* const from =
      shared_[static_cast<std::size_t>(rank)] + begin * size_of(mine.dtype());
  if (bytes > 0) std::memcpy(mine.data(), from, static_cast<std::size_t>(bytes));
  transport_.count_moved(bytes);
}

void PeerRanges::reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) {
  const auto rank = static_cast<std::size_t>(transport_.rank());
  const std::int64_t end = begin + mine.count();
  take_parts(begin, end);
  xs_[rank] = mine;
  constexpr std::int64_t kStartPays = 8192;  // as for copy_across()
  const View ys[] = {mine, ranges_[rank].slice(begin, end)};
  reduce(stream, op, xs_, ys, own(), mine.bytes() < kStartPays ? Stores::cached : Stores::across,
         2 * (transport_.size() - 1) * mine.bytes());
}

void PeerRanges::reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) {
  take_parts(begin, end, (transport_.rank() + 1) % transport_.size());
  const View mine = own_range().slice(begin, end);
  reduce(stream, op, xs_, {&mine, 1}, own(), Stores::cached,
         (transport_.size() - 1) * mine.bytes());
}

void PeerRanges::read(Stream& stream, int rank, std::int64_t begin, const View& mine) {
  const View& range = ranges_[static_cast<std::size_t>(rank)];
  ScopedSpan span(stream.tracer(), "read", "exchange", mine.bytes(), rank);
  note_details(span, mine, {rank, rank + 1}, own());
  operations_.copy(stream, range.slice(begin, begin + mine.count()), mine);
}

void PeerRanges::reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                           std::int64_t end) {
  take_parts(begin, end, root);
  const View to = ranges_[static_cast<std::size_t>(root)].slice(begin, end);
  const int ranks = transport_.size();
  const std::int64_t moved = (root == transport_.rank() ? ranks - 1 : ranks) * to.bytes();
  ScopedSpan span(stream.tracer(), "direct", "exchange", moved);
  note_reduction(span, op, own_range().slice(begin, end), {root, root + 1});
  operations_.reduce(stream, op, xs_, {&to, 1}, {.divisor = ranks});
  transport_.count_moved(moved);
}

void PeerRanges::spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) {
  const ConstView from = ranges_[static_cast<std::size_t>(root)].slice(begin, end);
  const std::int64_t moved = (transport_.size() - 1) * from.bytes();
  ScopedSpan span(stream.tracer(), "spread", "exchange", moved);
  note_details(span, own_range().slice(begin, end), {root, root + 1}, all());
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank == root) continue;
    const View to = ranges_[static_cast<std::size_t>(rank)].slice(begin, end);
    if (rank == transport_.rank() || !stream.in_order_with_host()) {
      operations_.copy(stream, from, to);
    } else {
      copy_across(to.data(), from.data(), from.bytes());
    }
  }
  transport_.count_moved(moved);
}

void PeerRanges::take_parts(std::int64_t begin, std::int64_t end, int first) {
  xs_.clear();
  for (const View& range : ranges_) xs_.push_back(range.slice(begin, end));
  // std::ranges::rotate() is not for clang 14.
  std::rotate(xs_.begin(), xs_.begin() + first, xs_.end());
}

std::string PeerRanges::text_of_unlike_ways(int peer) const {
  return fmt::format(
      "ranks {} and {} go about {} in unlike ways; all ranks must have the same "
      "strategy, and the same table of strategies",
      peer, transport_.rank(), describe(*transport_.recorder().latest()));
}

void PeerRanges::note_details(ScopedSpan& span, const ConstView& data, RankRange of,
                              RankRange into) const {
  if (!span.traces()) return;
  ExchangeDetails& details = span.details();
  details.call = transport_.recorder().current().sequence;
  details.begin = transport_.offset_of(data);
  if (details.begin >= 0) details.end = details.begin + data.bytes();
  details.of = of;
  details.into = into;
}

void PeerRanges::note_reduction(ScopedSpan& span, ReduceOp op, const ConstView& data,
                                RankRange into) const {
  if (!span.traces()) return;
  note_details(span, data, all(), into);
  span.details().op = name_of(combine_of(op));
}

PeerRanges::Meeting::Meeting(const PeerRanges& peers, Stream& stream)
    : span(stream.tracer(), "meet", "exchange") {
  if (span.traces()) span.details().call = peers.transport().recorder().current().sequence;
}

void PeerRanges::reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs,
                        std::span<const View> ys, RankRange into, Stores stores,
                        std::int64_t bytes_moved) {
  ScopedSpan span(stream.tracer(), "direct", "exchange", bytes_moved);
  const bool into_all = into.end - into.begin > 1;
  note_reduction(span, op, into_all ? ys[static_cast<std::size_t>(transport_.rank())] : ys[0],
                 into);
  const ReduceOptions options{.divisor = transport_.size(), .stores = stores};
  operations_.reduce(stream, op, xs, ys, options);
  transport_.count_moved(bytes_moved);
}

}  // namespace ringlet::comm
