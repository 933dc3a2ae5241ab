#include "bench/all_reduce/rank_buffers.h"

#include <cstring>

#include "base/hash.h"
#include "bench/all_reduce/read_all.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"

namespace ringlet::bench {

namespace {

/// The elements of a rank's input: its part, or all.
std::int64_t input_count(const Collective& collective, std::int64_t count, int ranks) {
  return collective.id == CollectiveId::all_gather ? count / ranks : count;
}

}  // namespace

RankBuffers::RankBuffers(const Work& work, Device& device, const comm::Communicator& world,
                         const comm::Transport& ranks)
    : stream_(device.communication()),
      work_(work),
      rank_(ranks.rank()),
      ranks_(ranks.size()),
      pattern_(pattern_for(work.call.collective, work.type, work.call.op, rank_, ranks_)),
      result_(world.allocator(device), {work.bytes / size_of(work.type)}, work.type) {
  const Collective& collective = work.call.collective;
  const bool is_natural =
      collective.place == NaturalPlace::either || work.in_place == collective.is_in_place();
  const std::int64_t mine = input_count(collective, result().count(), ranks_);
  const View within =
      mine == result().count() ? result() : result().slice(rank_ * mine, (rank_ + 1) * mine);
  const bool calls_with_other = collective.place == NaturalPlace::either
                                    ? !work.in_place
                                    : collective.place == NaturalPlace::apart;
  if (calls_with_other) {
    other_ = Tensor(world.allocator(device), {mine}, work.type);
  } else if (!work.in_place) {
    other_ = Tensor(device, {mine}, work.type);
  }
  written_ = work.in_place ? within : other_.view();
  called_with_ = calls_with_other ? other_.view() : within;
  // Of a broadcast only the root's input goes anywhere.
  const bool is_read = collective.reduces || !collective.has_root || rank_ == work.call.root;
  owned_ = find_owned();
  if (!is_natural && is_read) copied_to_ = calls_with_other ? other_.view() : within;
  if (!stream_.in_order_with_host()) on_host_.resize(static_cast<std::size_t>(work.bytes));
}

void RankBuffers::write_input(std::int64_t iteration) {
  void* const data = on_host_.empty() ? written_.data() : on_host_.data();
  pattern_.write_input(iteration, data, written_.bytes());
  if (!on_host_.empty()) copy_from_host(stream_, data, written_);
  stream_.synchronize();
}

void RankBuffers::copy_input() {
  if (copied_to_.absent()) return;
  if (on_host_.empty()) {
    std::memcpy(copied_to_.data(), written_.data(), static_cast<std::size_t>(written_.bytes()));
  } else {
    copy(stream_, written_, copied_to_);
  }
}

View RankBuffers::find_owned() const {
  const auto [begin, end] = owned_after(work_.call, rank_, ranks_, result().count());
  return result().slice(begin, end);
}

void RankBuffers::read_result() {
  if (on_host_.empty()) kept_ = read_all(owned_.data(), owned_.bytes());
}

std::int64_t RankBuffers::count_wrong(std::int64_t iteration) {
  return bench::count_wrong(work_.call, pattern_, rank_, ranks_, iteration, result_on_host());
}

std::uint64_t RankBuffers::hash() {
  const auto [begin, end] = owned_after(work_.call, rank_, ranks_, result().count());
  const ConstView mine = result_on_host().slice(begin, end);
  return hash_bytes(mine.data(), static_cast<std::size_t>(mine.bytes()));
}

ConstView RankBuffers::result_on_host() {
  if (on_host_.empty()) return result();
  copy_to_host(stream_, result_, on_host_.data());
  stream_.synchronize();
  return {on_host_.data(), {result().count()}, work_.type};
}

}  // namespace ringlet::bench
