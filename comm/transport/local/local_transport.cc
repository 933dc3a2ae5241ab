#include "comm/transport/local/local_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/processors.h"
#include "base/trace.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/local/local_peer_access.h"
#include "comm/transport/local/staggered_memory.h"
#include "comm/transport/peer_memory.h"
#include "comm/transport/rank_wait.h"
#include "kernels/host_copy.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

/// in = arriving, or in = op(in, arriving), in one pass over the peer's memory.
void take(Stream& stream, const void* arriving, const View& in, Combine combine) {
  if (combine == Combine::copy) {
    copy_across(in.data(), arriving, in.bytes());
  } else {
    reduce_into(stream, operation_of(combine), ConstView(arriving, in.shape(), in.dtype()), in);
  }
}

std::chrono::nanoseconds chosen_spin(int size, int processors, const LocalGroupOptions& options) {
  if (options.spin_microseconds < 0) return spin_time(size, processors);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(options.spin_microseconds * 1e3));
}

}  // namespace

/// One rank's end of the group.
class LocalTransport final : public Transport {
 public:
  LocalTransport(LocalGroup& group, int channel, const World& world)
      : Transport(world),
        group_(group),
        number_(channel),
        channel_(*group.channels_[static_cast<std::size_t>(channel)]),
        waiting_(group, *this, channel_.doorbell(world.rank), group.spin_),
        outgoing_(static_cast<std::size_t>(group.replicas())),
        received_(static_cast<std::size_t>(group.replicas())),
        peers_(group, channel_, *this) {}

  void set_machine(const World& world) { set_world(world); }

  void abort(const std::string& reason) noexcept override { group_.abort(rank(), reason); }
  std::optional<RootCause> root_cause() const override { return group_.root_cause(); }
  FlightRecorder& recorder() override { return recorder_; }
  std::optional<RankStatus> look_at(int other) const override {
    if (!group_.holds(other)) return group_.look_elsewhere_(other, number_);
    return group_.status_of(other, number_);
  }
  std::optional<CollectiveRecord> waits_in(int other) const override {
    if (!group_.holds(other)) return std::nullopt;
    return channel_.transport(other).recorder().latest();
  }
  const RankNames& names() const override { return group_.names(); }
  CostModel typical_costs() const override { return memory_costs(size(), group_.processors_); }
  PeerAccess* peer_access() override {
    const bool all_here = group_.replicas() == size() && world().machines == 1;
    return group_.in_reach_ && all_here ? &peers_ : nullptr;
  }
  Allocator& allocator(Device& device) override;
  int machine_of(int rank) const override {
    return group_.machine_of_.empty() ? 0 : group_.machine_of_[static_cast<std::size_t>(rank)];
  }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  /// What this rank alone knows of its messages to another one.
  struct Outgoing {
    std::uint64_t posted = 0;
    std::uint64_t taken = 0;                    // when it last looked: the other rank writes there
    std::unique_ptr<Mailbox::Copy[]> copies{};  // one a slot, once there is a short message
  };

  /// Whether one of the two is on a GPU, and the other on a processor.
  bool is_of_another_kind(int other) const;
  bool is_copied(const Stream& stream, int to, std::int64_t bytes) const;
  std::size_t local_index(int other) const {
    return static_cast<std::size_t>(other - group_.first_rank());
  }
  Outgoing& outgoing(int to) { return outgoing_[local_index(to)]; }
  void wait_for_slot(int to);
  ConstView copy_for(int to, const ConstView& out);
  void take_from_host(Stream& stream, const Mailbox::Slot& box, const View& in, Combine combine);
  static void* scratch(Stream& stream, int half, std::int64_t bytes);
  ConstView staged(Stream& stream, const ConstView& out);
  void post(Stream& stream, int to, const ConstView& out, bool is_copy);
  void receive_posted(Stream& stream, int from, const View& in, Combine combine);
  void launch_taking(Stream& stream, const Mailbox::Slot& box, const View& in, Combine combine);
  void await_taking(Stream& stream, int to);
  void take_back(int to) noexcept;
  void check_message(const Stream& stream, int from, const Mailbox::Slot& box, std::int64_t bytes);

  LocalGroup& group_;
  int number_;  // of the channel
  LocalChannel& channel_;
  FlightRecorder recorder_;
  RankWait<LocalGroup> waiting_;
  std::vector<Outgoing> outgoing_;       // by local index
  std::vector<std::uint64_t> received_;  // messages, by local index
  LocalPeerAccess peers_;
  std::vector<std::byte> on_host_;      // what a processor's rank reads of a GPU's
  std::deque<StaggeredMemory> memory_;  // of the rank's processor: one
};

Allocator& LocalTransport::allocator(Device& device) {
  if (device.id().kind != DeviceKind::cpu) return device;
  const auto of = [&](const StaggeredMemory& memory) { return &memory.from() == &device; };
  const auto found = std::ranges::find_if(memory_, of);
  if (found != memory_.end()) return *found;
  return memory_.emplace_back(device, static_cast<int>(local_index(rank())), group_.replicas());
}

bool LocalTransport::is_of_another_kind(int other) const {
  if (group_.kinds_.empty()) return false;
  const auto kind_of = [this](int of) {
    return group_.kinds_[static_cast<std::size_t>(of - group_.first_rank())];
  };
  return kind_of(other) != kind_of(rank());
}

void LocalTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                                 Combine combine) {
  waiting_.throw_if_aborted();
  if (to == kNobody) {
    if (from != kNobody) receive_posted(stream, from, in, combine);
    return;
  }
  wait_for_slot(to);
  const bool copied = is_copied(stream, to, out.bytes());
  const bool in_place = from != kNobody && in.data() == out.data();
  try {
    post(stream, to, copied ? copy_for(to, out) : in_place ? staged(stream, out) : out, copied);
    if (from != kNobody) {
      recorder_.set_waiting(Waiting::to_receive);
      receive_posted(stream, from, in, combine);
      recorder_.set_waiting(Waiting::to_send);
    }
    if (!copied) await_taking(stream, to);
  } catch (...) {  // a receiver counts on it that nothing is taken back before
    group_.abort(rank(), message_of_current_exception());
    take_back(to);
    throw;
  }
}

bool LocalTransport::is_copied(const Stream& stream, int to, std::int64_t bytes) const {
  return bytes <= Mailbox::kLongestCopy && stream.in_order_with_host() && !is_of_another_kind(to);
}

/// The next message's slot may still hold a copy that nobody has read.
void LocalTransport::wait_for_slot(int to) {
  Outgoing& mine = outgoing(to);
  if (mine.posted - mine.taken < Mailbox::kSlots) return;
  const Mailbox& mailbox = channel_.mailbox(rank(), to);
  recorder_.set_waiting(Waiting::to_send);
  waiting_.wait(to, [&] {
    mine.taken = mailbox.taken.load();
    return mine.posted - mine.taken < Mailbox::kSlots;
  });
  recorder_.set_waiting(Waiting::both);
}

/// A copy of `out` that is as long-lived as the group.
ConstView LocalTransport::copy_for(int to, const ConstView& out) {
  Outgoing& mine = outgoing(to);
  const std::uint64_t number = mine.posted + 1;
  std::byte* copy = channel_.mailbox(rank(), to).slot(number).inside.data();
  if (out.bytes() > Mailbox::kLongestInside) {
    if (!mine.copies) {
      mine.copies = std::make_unique_for_overwrite<Mailbox::Copy[]>(Mailbox::kSlots);
    }
    copy = mine.copies[number % Mailbox::kSlots].bytes.data();
  }
  copy_across(copy, out.data(), out.bytes());
  return {copy, out.shape(), out.dtype(), out.layout()};
}

void LocalTransport::await_taking(Stream& stream, int to) {
  Mailbox& mailbox = channel_.mailbox(rank(), to);
  Outgoing& mine = outgoing(to);
  waiting_.wait(to, [&] {
    mine.taken = mailbox.taken.load();
    return mine.taken == mine.posted;
  });
  if (!mailbox.slot(mine.posted).in_order_with_host) {
    mailbox.events_of(mine.posted).taken.hold(stream);
  }
}

/// One of two halves of the stream's workspace, for a message: from one a message is sent while
/// another arrives in the other. The stream's next message finds both free.
void* LocalTransport::scratch(Stream& stream, int half, std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  const std::int64_t each = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return static_cast<std::byte*>(stream.workspace(2 * each)) + half * each;
}

/// A copy of `out` for the peer to read while the original changes.
ConstView LocalTransport::staged(Stream& stream, const ConstView& out) {
  const View copy(scratch(stream, 0, out.bytes()), out.shape(), out.dtype());
  if (stream.in_order_with_host()) {
    copy_across(copy.data(), out.data(), out.bytes());
  } else {
    group_.operations_->copy(stream, out, copy);
  }
  return copy;
}

void LocalTransport::post(Stream& stream, int to, const ConstView& out, bool is_copy) {
  const std::uint64_t number = outgoing(to).posted + 1;
  Mailbox& mailbox = channel_.mailbox(rank(), to);
  Mailbox::Slot& box = mailbox.slot(number);
  box.state.store(Mailbox::posted, std::memory_order_relaxed);
  box.is_copy = is_copy;
  box.data = out.data();
  box.bytes = out.bytes();
  box.tag = recorder_.outgoing();
  box.device = stream.device().id();
  box.in_order_with_host = is_copy || stream.in_order_with_host() || is_of_another_kind(to);
  if (!box.in_order_with_host) {
    mailbox.events_of(number).sent.record(stream);
  } else if (!stream.in_order_with_host()) {
    on_host_.resize(static_cast<std::size_t>(box.bytes));
    copy_to_host(stream, out, on_host_.data());
    box.data = on_host_.data();
  }
  outgoing(to).posted = number;
  box.number.store(number);
  channel_.doorbell(to).ring();
}

void LocalTransport::receive_posted(Stream& stream, int from, const View& in, Combine combine) {
  Mailbox& mailbox = channel_.mailbox(from, rank());
  std::uint64_t& received = received_[local_index(from)];
  const std::uint64_t number = received + 1;
  Mailbox::Slot& box = mailbox.slot(number);
  waiting_.wait(from, [&box, number] { return box.number.load() == number; });
  auto expected = Mailbox::posted;
  if (!box.is_copy && !box.state.compare_exchange_strong(expected, Mailbox::reading)) {
    waiting_.throw_if_aborted();  // the sender took its message back, which it does only then
  }
  received = number;
  const struct Taking {  // also when the message is refused: the sender may be waiting for it
    Mailbox& mailbox;
    std::uint64_t number;
    bool is_told;
    Doorbell& sender;
    ~Taking() {
      if (!is_told) return;
      mailbox.taken.store(number);
      sender.ring();
    }
  } taking{mailbox, number, Mailbox::is_told(number, box.is_copy), channel_.doorbell(from)};
  check_message(stream, from, box, in.bytes());
  if (stream.in_order_with_host()) {
    take(stream, box.data, in, combine);
    return;
  }
  if (box.in_order_with_host) return take_from_host(stream, box, in, combine);
  Mailbox::Events& events = mailbox.events_of(number);
  events.sent.hold(stream);
  launch_taking(stream, box, in, combine);
  events.taken.record(stream);
}

/// take() on the receiver's stream.
void LocalTransport::launch_taking(Stream& stream, const Mailbox::Slot& box, const View& in,
                                   Combine combine) {
  if (in.bytes() == 0) return;
  const MemoryOperations& operations = *group_.operations_;
  const ConstView arriving(box.data, in.shape(), in.dtype());
  const bool in_reach = stream.device().reads_memory_of(box.device);
  if (combine == Combine::copy) {
    if (in_reach) return operations.copy(stream, arriving, in);
    return operations.copy_from(stream, box.device, arriving, in);
  }
  const ReduceOp op = operation_of(combine);
  if (in_reach) return operations.reduce_into(stream, op, arriving, in);
  const View near(scratch(stream, 1, in.bytes()), in.shape(), in.dtype());
  operations.copy_from(stream, box.device, arriving, near);
  operations.reduce_into(stream, op, near, in);
}

/// take() on the receiver's stream, of a processor's memory. Waits until it has been read.
void LocalTransport::take_from_host(Stream& stream, const Mailbox::Slot& box, const View& in,
                                    Combine combine) {
  if (in.bytes() == 0) return;
  if (combine == Combine::copy) return copy_from_host(stream, box.data, in);
  const View near(scratch(stream, 1, in.bytes()), in.shape(), in.dtype());
  copy_from_host(stream, box.data, near);
  group_.operations_->reduce_into(stream, operation_of(combine), near, in);
}

/// The latest message, of which copies may be read for ever.
void LocalTransport::take_back(int to) noexcept {
  Mailbox& mailbox = channel_.mailbox(rank(), to);
  const std::uint64_t number = outgoing(to).posted;
  Mailbox::Slot& box = mailbox.slot(number);
  auto expected = Mailbox::posted;
  if (box.is_copy) return;
  if (box.state.compare_exchange_strong(expected, Mailbox::taken_back)) return;
  while (mailbox.taken.load() < number) std::this_thread::yield();
  try {  // the peer's stream may still read what this rank is about to free
    mailbox.events_of(number).taken.synchronize();
  } catch (const std::exception&) {  // then its device has failed and reads no more
  }
}

void LocalTransport::check_message(const Stream& stream, int from, const Mailbox::Slot& box,
                                   std::int64_t bytes) {
  const bool of_one_kind = box.in_order_with_host == stream.in_order_with_host();
  if (!of_one_kind && !is_of_another_kind(from)) {
    waiting_.fail<MismatchError>(fmt::format(
        "rank {} sends from {}, but rank {} receives on {}; all replicas' devices must be of one "
        "kind",
        from, box.device.to_string(), rank(), stream.device().id().to_string()));
  }
  const CollectiveTag expected = recorder_.incoming();
  if (box.bytes == bytes && box.tag == expected) return;
  const auto theirs = channel_.transport(from).recorder().find(box.tag);
  waiting_.fail<MismatchError>(explain_mismatch(from, box.bytes, side_of(box.tag, theirs), rank(),
                                                bytes, side_of(expected, recorder_.latest())));
}

LocalChannel::LocalChannel(int first_rank, int replicas)
    : first_rank_(first_rank), replicas_(replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  mailboxes_ = std::make_unique<Mailbox[]>(count * count);
  doorbells_ = std::make_unique<Doorbell[]>(count);
  boards_ = std::make_unique<PeerBoard[]>(count);
}

LocalChannel::~LocalChannel() = default;

Transport& LocalChannel::transport(int rank) { return *transports[local_index(rank)]; }

LocalGroup::LocalGroup(int replicas, const LocalGroupOptions& options)
    : Group(options.first_rank, replicas, std::max(replicas, options.world_size)),
      look_elsewhere_(options.look_elsewhere),
      processors_(usable_processors()),
      spin_(chosen_spin(size(), processors_, options)),
      stream_from_(options.stream_from < 0 ? last_cache_bytes() : options.stream_from),
      in_reach_(options.in_reach),
      kinds_(options.kinds),
      operations_(options.operations == nullptr ? &kernels_ : options.operations) {
  require(replicas >= 1, "LocalGroup", "a group has at least one rank");
  require(kinds_.empty() || std::ssize(kinds_) == replicas, "LocalGroup",
          "every rank has a device of some kind");
  if (replicas > kMostRanks) {
    throw ContractError(fmt::format(
        "{} replicas in one process are more than {}; give fewer devices, or use several processes",
        replicas, kMostRanks));
  }
  open_channels(1);
}

LocalGroup::~LocalGroup() = default;

Transport& LocalGroup::channel(int rank, int number) {
  require(holds(rank), "LocalGroup::transport", "there is no such rank");
  require(0 <= number && number < channels(), "LocalGroup::channel", "there is no such channel");
  return channels_[static_cast<std::size_t>(number)]->transport(rank);
}

void LocalGroup::open_channels(int count) {
  const int open = channels();
  require(count >= 0 && count <= kMostChannels - open, "LocalGroup::open_channels",
          "a group has at most 8 channels, one of them the world's");
  for (int number = open; number < open + count; ++number) {
    auto& made = channels_[static_cast<std::size_t>(number)];
    made = std::make_unique<LocalChannel>(first_rank(), replicas());
    for (int rank = first_rank(); holds(rank); ++rank) {
      made->transports.push_back(std::make_unique<LocalTransport>(*this, number, world_of(rank)));
    }
    channel_count_.store(number + 1, std::memory_order_release);
  }
}

World LocalGroup::world_of(int rank) const {
  World world{.rank = rank,
              .size = size(),
              .local_rank = rank - first_rank(),
              .local_size = replicas(),
              .machine_rank = rank,
              .machine_size = size()};
  if (machine_of_.empty()) return world;
  const auto count = [this](auto end, int machine) {
    return static_cast<int>(std::count(machine_of_.begin(), end, machine));
  };
  const auto own = machine_of_.begin() + rank;
  world.machine = *own;
  world.machines = *std::max_element(machine_of_.begin(), machine_of_.end()) + 1;
  world.machine_rank = count(own, *own);
  world.machine_size = count(machine_of_.end(), *own);
  return world;
}

/// What a rank does beside its collectives it notes on any of its channels.
RankStatus LocalGroup::status_of(int rank, int channel) const {
  const auto recorder_of = [&](int number) -> const FlightRecorder& {
    return channels_[static_cast<std::size_t>(number)]->transport(rank).recorder();
  };
  const FlightRecorder& recorder = recorder_of(channel);
  RankStatus status{.latest = recorder.latest(), .exchange = recorder.exchange()};
  for (int number = 0; number < channels(); ++number) {
    const FlightRecorder& other = recorder_of(number);
    status.worked_ns = std::max(status.worked_ns, other.work_clock().at_ns());
    const Activity activity = other.activity();
    if (activity.since_ns > status.activity.since_ns) status.activity = activity;
  }
  status.seen_ns = now_ns();
  return status;
}

void LocalGroup::set_machines(std::vector<int> machine_of) {
  require(machine_of.size() == static_cast<std::size_t>(size()), "LocalGroup::set_machines",
          "every rank of the world is on a machine");
  machine_of_ = std::move(machine_of);
  for (int number = 0; number < channels(); ++number) {
    for (const auto& transport : channels_[static_cast<std::size_t>(number)]->transports) {
      transport->set_machine(world_of(transport->rank()));
    }
  }
}

std::shared_ptr<void> LocalGroup::share(const std::string& /*key*/, std::int64_t bytes,
                                        double /*timeout_seconds*/) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const auto count = (static_cast<std::size_t>(bytes) + sizeof(Line) - 1) / sizeof(Line);
  const std::shared_ptr<Line[]> lines(new Line[count]());
  return {lines, lines.get()};
}

bool LocalGroup::abort(int rank, const std::string& message) noexcept {
  {
    const std::lock_guard lock(cause_mutex_);
    if (cause_) return false;
    cause_.emplace().rank = rank;
    try {
      cause_->message = message;
    } catch (const std::bad_alloc&) {  // then without its message
    }
    aborted_.store(true);  // with the cause: whoever sees the one finds the other
  }
  for (int number = 0; number < channels(); ++number) {
    LocalChannel& channel = *channels_[static_cast<std::size_t>(number)];
    for (int each = first_rank(); holds(each); ++each) channel.doorbell(each).ring();
  }
  return true;
}

std::optional<RootCause> LocalGroup::root_cause() const {
  if (!aborted()) return std::nullopt;  // ranks ask at each step, and would meet at the lock
  const std::lock_guard lock(cause_mutex_);
  return cause_;
}

}  // namespace ringlet::comm
