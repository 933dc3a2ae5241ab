#include "comm/transport/shm/shm_transport.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "comm/processes/joined_group.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/peer_memory.h"
#include "comm/transport/rank_wait.h"
#include "comm/transport/shm/shm_memory.h"
#include "comm/transport/shm/shm_peer_access.h"
#include "kernels/device.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

/// Bytes [begin, begin + bytes) of `of`.
template <class V>
V piece_of(const V& of, std::int64_t begin, std::int64_t bytes) {
  const std::int64_t element = size_of(of.dtype());
  return of.slice(begin / element, (begin + bytes) / element);
}

/// How much of a message has gone through its channel.
struct Progress {
  ShmChannel* channel = nullptr;  // null: there is no message
  std::uint64_t next = 0;         // piece of the channel
  std::int64_t bytes = 0;
  std::int64_t done = 0;  // bytes
  bool finished = true;

  Progress() = default;
  Progress(ShmChannel& through, std::uint64_t first, std::int64_t length)
      : channel(&through), next(first), bytes(length), finished(false) {}
  std::int64_t next_bytes() const { return std::min(bytes - done, ShmChannel::kSlotBytes); }
  void advance(std::int64_t by) {
    ++next;
    done += by;
    finished = done == bytes;
  }
};

class ShmTransport final : public Transport {
 public:
  ShmTransport(JoinedGroup& group, std::shared_ptr<ShmShared> shared, Transport& local,
               int processors)
      : Transport(local.world()),
        group_(group),
        shared_(std::move(shared)),
        memory_(shared_->memory),
        local_(local),
        processors_(processors),
        waiting_(group, *this, memory_.board(rank()).doorbell,
                 spin_time(world().machine_size, processors)),
        outgoing_(static_cast<std::size_t>(size())),
        received_(static_cast<std::size_t>(size())),
        peers_(*shared_, *this, waiting_) {}

  void abort(const std::string& reason) noexcept override { group_.abort(rank(), reason); }
  std::optional<RootCause> root_cause() const override { return group_.root_cause(); }
  FlightRecorder& recorder() override { return local_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return local_.look_at(other); }
  void show_wait() override {
    const auto latest = recorder().latest();
    if (latest) {
      memory_.board(rank()).waits.enter(latest->tag, latest->name.data(), latest->entered_ns);
    }
  }
  std::optional<CollectiveRecord> waits_in(int other) const override {
    return memory_.board(other).waits.look();
  }
  const RankNames& names() const override { return local_.names(); }
  CostModel typical_costs() const override { return memory_costs(size(), processors_); }
  PeerAccess* peer_access() override { return world().machines == 1 ? &peers_ : nullptr; }
  int machine_of(int of) const override { return local_.machine_of(of); }
  Allocator& allocator(Device& device) override {
    return device.id().kind == DeviceKind::cpu ? static_cast<Allocator&>(shared_->heap) : device;
  }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  /// What this rank alone knows of its pieces to another one.
  struct Outgoing {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;  // when it last looked: the other rank writes there
  };

  void send_piece(int to, const ConstView& out, Progress& sending);
  void take_piece(Stream& stream, int from, const View& in, Combine combine, Progress& receiving);
  void check(int from, const ShmChannel::Slot& first, std::int64_t bytes);

  JoinedGroup& group_;
  std::shared_ptr<ShmShared> shared_;
  const ShmMemory& memory_;
  Transport& local_;
  int processors_;
  RankWait<JoinedGroup> waiting_;
  std::vector<Outgoing> outgoing_;       // by rank
  std::vector<std::uint64_t> received_;  // pieces, by rank
  ShmPeerAccess peers_;
};

void ShmTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                               Combine combine) {
  waiting_.throw_if_aborted();
  Progress sending, receiving;
  Outgoing* const mine = to == kNobody ? nullptr : &outgoing_[static_cast<std::size_t>(to)];
  if (to != kNobody) sending = {memory_.channel(rank(), to), mine->sent + 1, out.bytes()};
  if (from != kNobody) {
    receiving = {memory_.channel(from, rank()), received_[static_cast<std::size_t>(from)] + 1,
                 in.bytes()};
  }
  const bool in_place = to != kNobody && from != kNobody && in.data() == out.data();

  const auto can_send = [&sending, mine] {
    if (sending.finished) return false;
    const auto has_room = [mine] { return mine->sent - mine->taken < ShmChannel::kSlots; };
    if (!has_room()) mine->taken = sending.channel->taken.load();
    return has_room();
  };
  const auto can_take = [&sending, &receiving, in_place] {
    if (receiving.finished) return false;
    // What is added to in place must have been sent as it was before.
    if (in_place && !sending.finished && receiving.done >= sending.done) return false;
    return receiving.channel->slot(receiving.next).piece.load() == receiving.next;
  };
  while (!sending.finished || !receiving.finished) {
    if (can_send()) {
      send_piece(to, out, sending);
    } else if (can_take()) {
      take_piece(stream, from, in, combine, receiving);
    } else {
      recorder().set_waiting(receiving.finished ? Waiting::to_send
                             : sending.finished ? Waiting::to_receive
                                                : Waiting::both);
      waiting_.wait(receiving.finished ? to : from, [&] { return can_send() || can_take(); });
    }
  }
}

void ShmTransport::send_piece(int to, const ConstView& out, Progress& sending) {
  const std::int64_t bytes = sending.next_bytes();
  ShmChannel::Slot& slot = sending.channel->slot(sending.next);
  // The data first: the peer looks at the other line, which is then written at once.
  copy_across(slot.data.data(), static_cast<const std::byte*>(out.data()) + sending.done, bytes);
  slot.message_bytes = sending.bytes;
  slot.tag = recorder().outgoing();
  slot.piece.store(sending.next);
  outgoing_[static_cast<std::size_t>(to)].sent = sending.next;
  memory_.board(to).doorbell.ring();
  sending.advance(bytes);
}

void ShmTransport::take_piece(Stream& stream, int from, const View& in, Combine combine,
                              Progress& receiving) {
  ShmChannel& channel = *receiving.channel;
  ShmChannel::Slot& slot = channel.slot(receiving.next);
  if (receiving.done == 0) check(from, slot, in.bytes());
  const std::int64_t bytes = receiving.next_bytes();
  const View into = piece_of(in, receiving.done, bytes);
  const std::byte* const arriving = slot.data.data();
  if (bytes > 0 && combine == Combine::copy) {
    std::memcpy(into.data(), arriving, static_cast<std::size_t>(bytes));
  } else if (bytes > 0) {
    reduce_into(stream, operation_of(combine), ConstView(arriving, into.shape(), into.dtype()),
                into);
  }
  received_[static_cast<std::size_t>(from)] = receiving.next;
  if (ShmChannel::is_told(receiving.next, receiving.bytes)) {
    channel.taken.store(receiving.next);
    memory_.board(from).doorbell.ring();
  }
  receiving.advance(bytes);
}

void ShmTransport::check(int from, const ShmChannel::Slot& first, std::int64_t bytes) {
  const CollectiveTag expected = recorder().incoming();
  if (first.message_bytes == bytes && first.tag == expected) return;
  const auto status = look_at(from);
  const auto theirs = side_of(first.tag, status ? status->latest : std::nullopt);
  waiting_.fail<MismatchError>(explain_mismatch(from, first.message_bytes, theirs, rank(), bytes,
                                                side_of(expected, recorder().latest())));
}

}  // namespace

namespace {

std::vector<std::unique_ptr<Transport>> connect_channel(JoinedGroup& group, int channel,
                                                        int processors, double timeout_seconds) {
  ShmMemory memory(group.size(), group.share("shared memory", ShmMemory::bytes_for(group.size()),
                                             timeout_seconds));
  const std::shared_ptr<ShmShared> shared(
      new ShmShared{std::move(memory), group.mesh(), ShmReach(group.mesh(), group.size())});
  std::vector<std::unique_ptr<Transport>> transports;
  for (int i = 0; i < group.replicas(); ++i) {
    auto transport = std::make_unique<ShmTransport>(
        group, shared, group.local().channel(group.first_rank() + i, channel), processors);
    // Gets the rank out of its wait. Where connections to other machines do not come about, the
    // transport is gone by then.
    group.on_abort([memory = shared->memory, rank = group.first_rank() + i] {
      memory.board(rank).doorbell.ring();
    });
    transports.push_back(std::move(transport));
  }
  return transports;
}

}  // namespace

ConnectChannel connect_shm(JoinedGroup& group, double timeout_seconds) {
  return [&group, timeout_seconds, processors = group.processors(timeout_seconds)](int channel) {
    return connect_channel(group, channel, processors, timeout_seconds);
  };
}

}  // namespace ringlet::comm
