#include "comm/transport/peer_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/trace.h"
#include "comm/transport/peer_memory.h"

namespace ringlet::comm {

PeerRanges::PeerRanges(Transport& transport, const MemoryOperations& operations,
                       std::int64_t stream_from)
    : transport_(transport), operations_(operations), stream_from_(stream_from) {
  const auto ranks = static_cast<std::size_t>(transport.size());
  ranges_.resize(ranks);
  shared_.resize(ranks);
  sources_.resize(ranks);
  targets_.resize(ranks);
}

Flat PeerRanges::part(int rank, std::int64_t begin, std::int64_t end) const {
  require(0 <= begin && begin <= end && end <= count_, "PeerRanges::part",
          "takes elements of the range");
  return {at(rank, begin), end - begin, dtype_};
}

void PeerRanges::take_sources(std::int64_t begin, int first) {
  int rank = first;
  for (const void*& source : sources_) {
    source = at(rank, begin);
    if (++rank == transport_.size()) rank = 0;
  }
}

void PeerRanges::reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) {
  const Flat mine = part(transport_.rank(), begin, end);
  take_sources(begin);
  for (int rank = 0; void*& target : targets_) target = at(rank++, begin);
  const std::int64_t bytes_of_all = transport_.size() * count_ * size_of(dtype_);
  const bool streams = transport_.size() > 1 && bytes_of_all > stream_from_;
  reduce(stream, op, mine, targets_, all(), streams ? Stores::streaming : Stores::cached,
         2 * (transport_.size() - 1) * mine.bytes());
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
  const Flat own_part = flat(mine);
  require(own_part.count == count_ && own_part.dtype == dtype_, "PeerRanges::reduce_into",
          "takes as many elements as a range has, and of its type");
  take_sources(0);
  sources_[static_cast<std::size_t>(transport_.rank())] = own_part.data;
  reduce(stream, op, own_part, {&own_part.data, 1}, own(), Stores::cached,
         (transport_.size() - 1) * own_part.bytes());
}

void PeerRanges::reduce_shared(Stream& stream, ReduceOp op, std::int64_t begin, const Flat& mine,
                               int first) {
  const int ranks = transport_.size();
  const std::int64_t moved = (ranks - 1) * mine.bytes();
  ScopedSpan span(stream.tracer(), "direct", "exchange", moved);
  if (span.traces()) note_reduction(span, op, mine, own());
  const std::int64_t offset = begin * size_of(mine.dtype);
  for (int rank = first; const void*& source : sources_) {
    source =
        rank == transport_.rank() ? mine.data : shared_[static_cast<std::size_t>(rank)] + offset;
    if (++rank == ranks) rank = 0;
  }
  reduce_arrays(stream, op, {sources_, {&mine.data, 1}, mine.dtype, mine.count},
                {.divisor = ranks});
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
  const Flat own_part = flat(mine);
  require(own_part.dtype == dtype_, "PeerRanges::reduce_part", "takes elements of a range's type");
  const Flat shown = part(transport_.rank(), begin, begin + own_part.count);
  take_sources(begin);
  sources_[static_cast<std::size_t>(transport_.rank())] = own_part.data;
  constexpr std::int64_t kStartPays = 8192;  // as for copy_across()
  void* const ys[] = {own_part.data, shown.data};
  reduce(stream, op, own_part, ys, own(),
         own_part.bytes() < kStartPays ? Stores::cached : Stores::across,
         2 * (transport_.size() - 1) * own_part.bytes());
}

void PeerRanges::reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) {
  const Flat mine = part(transport_.rank(), begin, end);
  take_sources(begin, (transport_.rank() + 1) % transport_.size());
  reduce(stream, op, mine, {&mine.data, 1}, own(), Stores::cached,
         (transport_.size() - 1) * mine.bytes());
}

void PeerRanges::read(Stream& stream, int rank, std::int64_t begin, const View& mine) {
  ScopedSpan span(stream.tracer(), "read", "exchange", mine.bytes(), rank);
  note_details(span, mine, {rank, rank + 1}, own());
  operations_.copy(stream, part(rank, begin, begin + mine.count()).view(), mine);
}

void PeerRanges::reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                           std::int64_t end) {
  const Flat mine = part(transport_.rank(), begin, end);
  take_sources(begin, root);
  void* const to = at(root, begin);
  const int ranks = transport_.size();
  const int moved = root == transport_.rank() ? ranks - 1 : ranks;
  reduce(stream, op, mine, {&to, 1}, {root, root + 1}, Stores::cached, moved * mine.bytes());
}

void PeerRanges::spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) {
  const ConstView from = part(root, begin, end).view();
  const std::int64_t moved = (transport_.size() - 1) * from.bytes();
  ScopedSpan span(stream.tracer(), "spread", "exchange", moved);
  note_details(span, part(transport_.rank(), begin, end).view(), {root, root + 1}, all());
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank == root) continue;
    const View to = part(rank, begin, end).view();
    if (rank == transport_.rank() || !stream.in_order_with_host()) {
      operations_.copy(stream, from, to);
    } else {
      copy_across(to.data(), from.data(), from.bytes());
    }
  }
  transport_.count_moved(moved);
}

std::string PeerRanges::text_of_unlike_ways(int peer) const {
  return fmt::format(
      "ranks {} and {} go about {} in unlike ways; all ranks must have the same "
      "strategy, and the same table of strategies",
      peer, transport_.rank(),
      describe(transport_.recorder().latest().value_or(CollectiveRecord{})));
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

void PeerRanges::note_reduction(ScopedSpan& span, ReduceOp op, const Flat& mine,
                                RankRange into) const {
  note_details(span, mine.view(), all(), into);
  span.details().op = name_of(combine_of(op));
}

PeerRanges::Meeting::Meeting(const PeerRanges& peers, Stream& stream)
    : span(stream.tracer(), "meet", "exchange") {
  if (span.traces()) span.details().call = peers.transport().recorder().current().sequence;
}

void PeerRanges::reduce(Stream& stream, ReduceOp op, const Flat& mine, std::span<void* const> ys,
                        RankRange into, Stores stores, std::int64_t bytes_moved) {
  ScopedSpan span(stream.tracer(), "direct", "exchange", bytes_moved);
  if (span.traces()) note_reduction(span, op, mine, into);
  const ReduceOptions options{.divisor = transport_.size(), .stores = stores};
  if (stream.in_order_with_host()) {
    reduce_arrays(stream, op, {sources_, ys, mine.dtype, mine.count}, options);
  } else {
    xs_.clear();
    ys_.clear();
    for (const void* const x : sources_) xs_.emplace_back(x, Shape{mine.count}, mine.dtype);
    for (void* const y : ys) ys_.emplace_back(y, Shape{mine.count}, mine.dtype);
    operations_.reduce(stream, op, xs_, ys_, options);
  }
  transport_.count_moved(bytes_moved);
}

}  // namespace ringlet::comm
