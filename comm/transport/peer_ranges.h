// PeerRanges: reduces and copies the ranks' ranges once the ranks have met, wherever these lie in
// this process's addresses. Every PeerAccess stands on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/trace.h"
#include "comm/core/errors.h"
#include "comm/core/peer_access.h"
#include "comm/core/transport.h"
#include "comm/transport/memory_operations.h"
#include "comm/transport/peer_memory.h"

namespace ringlet::comm {

class PeerRanges : public PeerAccess {
 public:
  /// `stream_from`: bytes over all ranks from which a reduction into everybody's memory writes past
  /// the caches. The others outlive this.
  PeerRanges(Transport& transport, const MemoryOperations& operations, std::int64_t stream_from);

  void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override;
  void copy(Stream& stream, const ConstView& x, const View& y) override;
  void reduce_into(Stream& stream, ReduceOp op, const View& mine) override;
  void reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) override;
  void reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override;
  void read(Stream& stream, int rank, std::int64_t begin, const View& mine) override;
  void reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                 std::int64_t end) override;
  void spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) override;
  bool shares(const Stream& stream, std::int64_t bytes) const override {
    return bytes <= kLongestShared && transport_.size() <= kMaxReduced &&
           stream.in_order_with_host();
  }
  void reduce_shared(Stream& stream, ReduceOp op, std::int64_t begin, const Flat& mine,
                     int first) override;
  void read_shared(Stream& stream, int rank, std::int64_t begin, const View& mine) override;

 protected:
  Transport& transport() const { return transport_; }
  /// A span of a meeting, for the trace.
  struct Meeting {
    Meeting(const PeerRanges& peers, Stream& stream);
    ScopedSpan span;
  };
  /// Where `peer` and this rank have come to one meeting by different strategies.
  template <class Wait>
  [[noreturn]] void fail_of_unlike_ways(Wait& waiting, int peer) const {
    waiting.template fail<MismatchError>(text_of_unlike_ways(peer));
  }
  /// After a meeting at which so many bytes were shared, everybody has read what was shown before
  /// it. What is shown next lies there, most often as long.
  template <class Shown>
  static void take_back_next(const Shown& shown, std::int64_t bytes) {
    take_back(&shown, kLinesAtOnce / 2);
    if (bytes > Shown::kInside) take_back(shown.copy.data(), bytes);
  }
  /// Of share(), where `data` is not null.
  void copy_shared(Stream& stream, const void* data, std::int64_t bytes, std::byte* to);
  void set_shared(int rank, const std::byte* data) {
    shared_[static_cast<std::size_t>(rank)] = data;
  }

  /// The ranges of a session that opens are as long as this one, and of its type.
  void set_kind(const View& mine) {
    count_ = mine.count();
    dtype_ = mine.dtype();
  }
  void set_range(int rank, void* data) { ranges_[static_cast<std::size_t>(rank)] = data; }

 private:
  RankRange all() const { return {0, transport_.size()}; }
  RankRange own() const { return {transport_.rank(), transport_.rank() + 1}; }
  std::string text_of_unlike_ways(int peer) const;
  /// Which of the collective's data, and whose, `span` is about.
  void note_details(ScopedSpan& span, const ConstView& data, RankRange of, RankRange into) const;
  /// The same of a reduction of all ranks' data.
  void note_reduction(ScopedSpan& span, ReduceOp op, const Flat& mine, RankRange into) const;
  /// Element `begin` of a rank's range.
  void* at(int rank, std::int64_t begin) const {
    return static_cast<std::byte*>(ranges_[static_cast<std::size_t>(rank)]) +
           begin * size_of(dtype_);
  }
  /// [begin, end) of a rank's range.
  Flat part(int rank, std::int64_t begin, std::int64_t end) const;
  /// Fills sources_ from element `begin` on, in the order of ranks that begins with `first`.
  void take_sources(std::int64_t begin, int first = 0);
  /// Each of `ys` = op of sources_; as many elements as `mine`, which is this rank's data in it.
  void reduce(Stream& stream, ReduceOp op, const Flat& mine, std::span<void* const> ys,
              RankRange into, Stores stores, std::int64_t bytes_moved);

  Transport& transport_;
  const MemoryOperations& operations_;
  std::int64_t stream_from_;
  // Addresses: to make views of them takes longer than to reduce a few KiB.
  std::vector<void*> ranges_;  // by rank, of the open session
  std::int64_t count_ = 0;     // elements of each
  DType dtype_ = DType::f32;
  std::vector<const std::byte*> shared_;  // by rank
  std::vector<const void*> sources_;      // of a reduction
  std::vector<void*> targets_;
  std::vector<ConstView> xs_;  // the same as views, for devices behind the host
  std::vector<View> ys_;
};

}  // namespace ringlet::comm
