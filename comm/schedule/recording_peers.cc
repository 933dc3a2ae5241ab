#include "comm/schedule/recording_peers.h"

namespace ringlet::comm {

std::int64_t address_of(const ConstView& data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data.address()) - kMetaMemory);
}

Range range_of(const ConstView& data) { return {address_of(data), data.bytes()}; }

RecordingPeers::RecordingPeers(RankSchedule& into, Device& device, std::int64_t window_bytes)
    : into_(into) {
  if (window_bytes > 0) windows_ = {Buffer(device, window_bytes), Buffer(device, window_bytes)};
}

bool RecordingPeers::can_show(const View& mine) {
  const auto is_of = [&mine](const Buffer& window) { return window.data() == mine.address(); };
  return window_bytes() == 0 || is_of(windows_[0]) || is_of(windows_[1]);
}

View RecordingPeers::window() {
  window_ = 1 - window_;
  return {windows_[window_].data(), {window_bytes()}, DType::u8};
}

void RecordingPeers::open(Stream& /*stream*/, const View& mine) {
  size_of_one_ = ringlet::size_of(mine.dtype());
  into_.steps.push_back(
      {.to = static_cast<std::int32_t>(into_.shown.size()), .kind = StepKind::meeting});
  into_.shown.push_back(range_of(mine));
}

void RecordingPeers::meet(Stream& /*stream*/) {
  into_.steps.push_back({.kind = StepKind::meeting});
}

void RecordingPeers::reduce_for_all(Stream& /*stream*/, ReduceOp /*op*/, std::int64_t begin,
                                    std::int64_t end) {
  add({.kind = Touch::Kind::reduce_for_all,
       .begin = begin * size_of_one_,
       .mine = {.bytes = (end - begin) * size_of_one_}});
}

void RecordingPeers::copy(Stream& /*stream*/, const ConstView& x, const View& y) {
  add({.kind = Touch::Kind::copy, .mine = range_of(y), .from = range_of(x)});
}

void RecordingPeers::reduce_into(Stream& /*stream*/, ReduceOp /*op*/, const View& mine) {
  add({.kind = Touch::Kind::reduce_into, .mine = range_of(mine)});
}

void RecordingPeers::reduce_part(Stream& /*stream*/, ReduceOp /*op*/, std::int64_t begin,
                                 const View& mine) {
  add({.kind = Touch::Kind::reduce_part, .begin = begin * size_of_one_, .mine = range_of(mine)});
}

void RecordingPeers::reduce_own(Stream& /*stream*/, ReduceOp /*op*/, std::int64_t begin,
                                std::int64_t end) {
  const std::int64_t at = begin * size_of_one_;
  add({.kind = Touch::Kind::reduce_part,
       .begin = at,
       .mine = {into_.shown.back().begin + at, (end - begin) * size_of_one_}});
}

void RecordingPeers::read(Stream& /*stream*/, int rank, std::int64_t begin, const View& mine) {
  add({.kind = Touch::Kind::read,
       .of = rank,
       .begin = begin * size_of_one_,
       .mine = range_of(mine)});
}

void RecordingPeers::reduce_to(Stream& /*stream*/, ReduceOp /*op*/, int root, std::int64_t begin,
                               std::int64_t end) {
  add({.kind = Touch::Kind::reduce_to,
       .of = root,
       .begin = begin * size_of_one_,
       .mine = {.bytes = (end - begin) * size_of_one_}});
}

void RecordingPeers::spread(Stream& /*stream*/, int root, std::int64_t begin, std::int64_t end) {
  add({.kind = Touch::Kind::spread,
       .of = root,
       .begin = begin * size_of_one_,
       .mine = {.bytes = (end - begin) * size_of_one_}});
}

void RecordingPeers::add(const Touch& touch) {
  into_.steps.push_back(
      {.to = static_cast<std::int32_t>(into_.touches.size()), .kind = StepKind::touch});
  into_.touches.push_back(touch);
}

}  // namespace ringlet::comm
