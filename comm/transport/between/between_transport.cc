#include "comm/transport/between/between_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "comm/processes/joined_group.h"
#include "comm/report/exchange_report.h"
#include "comm/report/patience.h"
#include "comm/report/wait_watch.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

/// The engine's own time-out. WaitWatch ends what lasts too long.
constexpr std::chrono::hours kWithoutEnd(24 * 365 * 3);

/// The header that goes before each message's data.
struct Header {
  std::int64_t bytes = 0;
  bool inside_collective = false;
  CollectiveRecord collective;
};
static_assert(std::is_trivially_copyable_v<Header>);

/// What joins a rank with those that the engine need not reach.
struct Near {
  Transport& transport;
  std::unique_ptr<Transport> owned{};  ///< the same, where it is shared memory
  bool is_whole_machine = false;       ///< it reaches all ranks of the machine, not of the process
};

class BetweenTransport final : public Transport, public CollectiveEngine {
 public:
  BetweenTransport(JoinedGroup& group, std::shared_ptr<MessageEngine> engine, int channel,
                   Near near)
      : Transport(near.transport.world()),
        group_(group),
        channel_(static_cast<std::uint64_t>(channel)),
        engine_(std::move(engine)),
        near_(std::move(near)),
        local_(near_.transport),
        header_out_(engine_->make_buffer()),
        header_in_(engine_->make_buffer()),
        data_out_(engine_->make_buffer()),
        data_in_(engine_->make_buffer()),
        watch_(
            *this, [this] { return engine_->moves(); }, [this](int peer) { give_up_on(peer); }) {
    header_out_->reserve(sizeof(Header));
    header_in_->reserve(sizeof(Header));
  }

  void abort(const std::string& reason) noexcept override { group_.abort(rank(), reason); }
  std::optional<RootCause> root_cause() const override { return group_.root_cause(); }
  bool is_held() const override { return engine_->is_inside(); }
  FlightRecorder& recorder() override { return local_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return local_.look_at(other); }
  const RankNames& names() const override { return local_.names(); }
  CollectiveEngine* engine() override { return group_.replicas() == 1 ? this : nullptr; }
  std::string hosts() const override { return group_.hosts(); }
  std::string path() const override {
    if (world().machines == 1) return {};
    return fmt::format("{} between {} machines{}", engine_->name(), world().machines,
                       near_.is_whole_machine ? ", shm inside" : "");
  }
  int machine_of(int of) const override { return local_.machine_of(of); }
  void set_line(const Line& line) override {
    Transport::set_line(line);
    local_.set_line(line);
  }
  CostModel typical_costs() const override {
    return world().machines == 1 ? Transport::typical_costs() : kEthernetCosts;
  }
  CostModel typical_costs_inside() const override { return {2e-6, 1 / 5e9, 1 / 16e9}; }

  const char* engine_name() const override { return engine_->name(); }
  void all_reduce(Stream& stream, View data, ReduceOp op) override {
    call_engine(data.bytes(), [&] { engine_->all_reduce({stream, data, op, kWithoutEnd}); });
  }
  void reduce_and_broadcast(Stream& stream, View data, ReduceOp op) override {
    call_engine(data.bytes(), [&] {
      engine_->reduce_and_broadcast({stream, data, op, kWithoutEnd});
    });
  }

  /// Gets this rank out of its wait; the group is aborted already. Any thread.
  void wake() {
    for (auto* buffer : {&header_out_, &header_in_, &data_out_, &data_in_}) (*buffer)->wake();
    engine_->break_off();
  }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  bool is_remote(int peer) const {
    if (peer == kNobody || group_.holds(peer)) return false;
    return !near_.is_whole_machine || !group_.on_this_machine(peer);
  }
  void start_far(int to, const ConstView& out, int from, const View& in);
  void start_sending_header(int to, std::int64_t bytes);
  void start_sending(int to, const ConstView& out);
  void start_receiving_header(int from);
  void start_receiving(int from, std::int64_t bytes);
  void finish_receiving_header(int from, std::int64_t bytes);
  void finish_receiving(Stream& stream, int from, const View& in, Combine combine);
  void finish_sending(int to, const ConstView& out);
  void check(int from, const Header& header, std::int64_t bytes);
  /// Of the data of so many bytes, or, with 0, of a header.
  MessageSlot slot(int from, int to, std::size_t bytes) const {
    const auto ranks = static_cast<std::uint64_t>(size());
    return {.pair = static_cast<std::uint64_t>(from) * ranks + static_cast<std::uint64_t>(to),
            .pairs = ranks * ranks,
            .channel = channel_,
            .bytes = bytes};
  }
  template <class Call>
  void call_engine(std::int64_t bytes, Call call);
  void agree_on_bytes(std::int64_t bytes);
  void give_up_on(int peer);
  void throw_if_aborted() const;
  template <class Call>
  void start(int peer, Call call);
  template <class Wait>
  void wait(int peer, Wait wait);
  [[noreturn]] void fail_with_engine(int peer, const std::string& error);
  template <class Failure>
  [[noreturn]] void fail(const std::string& message);

  JoinedGroup& group_;
  std::uint64_t channel_;
  std::shared_ptr<MessageEngine> engine_;
  Near near_;
  Transport& local_;  // near_'s
  std::unique_ptr<MessageBuffer> header_out_, header_in_, data_out_, data_in_;
  std::atomic<bool> gave_up_{false};
  WaitWatch watch_;  // last: its thread uses the others
};

constexpr std::size_t kCopyPiece = std::size_t{1} << 20;

/// Calls piece(begin, bytes) for each piece of so many bytes.
template <class Piece>
void for_pieces(std::size_t bytes, Piece piece) {
  for (std::size_t begin = 0; begin < bytes; begin += kCopyPiece) {
    piece(begin, std::min(kCopyPiece, bytes - begin));
  }
}

/// The far half is started first and awaited last; in between the near half runs to its end. That
/// one waits for near ranks only, whose own near half does not wait for anything remote, so the
/// order cannot deadlock.
void BetweenTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                                   Combine combine) {
  throw_if_aborted();
  local_.set_timeout(timeout_seconds());
  try {
    start_far(to, out, from, in);
    forward_exchange(local_, stream, is_remote(to) ? kNobody : to, out,
                     is_remote(from) ? kNobody : from, in, combine);
    if (is_remote(from)) {
      recorder().set_waiting(Waiting::to_receive);
      finish_receiving(stream, from, in, combine);
    }
    if (is_remote(to)) {
      recorder().set_waiting(Waiting::to_send);
      finish_sending(to, out);
    }
  } catch (...) {
    group_.abort(rank(), message_of_current_exception());  // the local half tells only this process
    throw;
  }
}

/// The engine's thread rests only until a piece has been copied: of a longer message it sends one
/// while the next is copied.
void BetweenTransport::start_far(int to, const ConstView& out, int from, const View& in) {
  const bool is_short = !is_remote(to) || out.bytes() <= static_cast<std::int64_t>(kCopyPiece);
  const Resting resting(is_short ? engine_->loop_to_rest() : nullptr);
  if (is_remote(from)) start_receiving(from, in.bytes());
  if (is_remote(to)) start_sending(to, out);
}

void BetweenTransport::start_sending_header(int to, std::int64_t bytes) {
  Header header{.bytes = bytes, .collective = {}};
  const auto latest = side_of(recorder().outgoing(), recorder().latest());
  if (latest && latest->inside()) {
    header.inside_collective = true;
    header.collective = *latest;
  }
  std::memcpy(header_out_->data(), &header, sizeof header);
  start(to,
        [&] { header_out_->send(group_.process_of(to), slot(rank(), to, 0), 0, sizeof header); });
}

void BetweenTransport::start_sending(int to, const ConstView& out) {
  const auto bytes = static_cast<std::size_t>(out.bytes());
  const int process = group_.process_of(to);
  data_out_->reserve(bytes);
  throw_if_aborted();  // a wake() before reserve() did not reach the new memory
  start_sending_header(to, out.bytes());
  for_pieces(bytes, [&](std::size_t begin, std::size_t length) {
    std::memcpy(data_out_->data() + begin, static_cast<const std::byte*>(out.data()) + begin,
                length);
    start(to, [&] { data_out_->send(process, slot(rank(), to, bytes), begin, length); });
  });
}

void BetweenTransport::start_receiving_header(int from) {
  start(from, [&] {
    header_in_->receive(group_.process_of(from), slot(from, rank(), 0), 0, sizeof(Header));
  });
}

void BetweenTransport::start_receiving(int from, std::int64_t bytes_of_data) {
  const auto bytes = static_cast<std::size_t>(bytes_of_data);
  const int process = group_.process_of(from);
  data_in_->reserve(bytes);
  throw_if_aborted();
  start_receiving_header(from);
  for_pieces(bytes, [&](std::size_t begin, std::size_t length) {
    start(from, [&] { data_in_->receive(process, slot(from, rank(), bytes), begin, length); });
  });
}

void BetweenTransport::finish_receiving_header(int from, std::int64_t bytes) {
  wait(from, [&](auto timeout) { header_in_->wait_received(timeout); });
  Header header;
  std::memcpy(&header, header_in_->data(), sizeof header);
  check(from, header, bytes);
}

void BetweenTransport::finish_receiving(Stream& stream, int from, const View& in, Combine combine) {
  finish_receiving_header(from, in.bytes());
  const auto element = static_cast<std::size_t>(size_of(in.dtype()));
  for_pieces(static_cast<std::size_t>(in.bytes()), [&](std::size_t begin, std::size_t length) {
    wait(from, [&](auto timeout) { data_in_->wait_received(timeout); });
    const auto first = static_cast<std::int64_t>(begin / element);
    const View piece = in.slice(first, first + static_cast<std::int64_t>(length / element));
    const std::byte* const arrived = data_in_->data() + begin;
    if (combine == Combine::copy) {
      std::memcpy(piece.data(), arrived, length);
    } else {
      reduce_into(stream, operation_of(combine), ConstView(arrived, piece.shape(), piece.dtype()),
                  piece);
    }
  });
}

void BetweenTransport::finish_sending(int to, const ConstView& out) {
  wait(to, [&](auto timeout) { header_out_->wait_sent(timeout); });
  for_pieces(static_cast<std::size_t>(out.bytes()), [&](std::size_t, std::size_t) {
    wait(to, [&](auto timeout) { data_out_->wait_sent(timeout); });
  });
}

void BetweenTransport::check(int from, const Header& header, std::int64_t bytes) {
  const CollectiveTag tag = header.inside_collective ? header.collective.tag : CollectiveTag{};
  const CollectiveTag expected = recorder().incoming();
  if (header.bytes == bytes && tag == expected) return;
  std::optional<CollectiveRecord> sender;
  if (header.inside_collective) sender = header.collective;
  fail<MismatchError>(explain_mismatch(from, header.bytes, sender, rank(), bytes,
                                       side_of(expected, recorder().latest())));
}

/// Each rank compares its length with that of the rank above. All round the ring that holds all
/// ranks to the same length.
void BetweenTransport::agree_on_bytes(std::int64_t bytes) {
  const int above = (rank() + 1) % size(), below = (rank() + size() - 1) % size();
  {
    const Resting resting(engine_->loop_to_rest());
    start_receiving_header(above);
    start_sending_header(below, bytes);
  }
  finish_receiving_header(above, bytes);
  wait(below, [&](auto timeout) { header_out_->wait_sent(timeout); });
}

template <class Call>
void BetweenTransport::call_engine(std::int64_t bytes, Call call) {
  throw_if_aborted();
  if (size() == 1) return;
  const int above = (rank() + 1) % size();
  try {
    agree_on_bytes(bytes);
    if (bytes == 0) return;
    wait(above, [&](auto) { call(); });
  } catch (const std::exception& error) {
    group_.abort(rank(), error.what());
    throw;
  }
}

/// For the rank that has waited for `peer` in vain. On the watch's thread.
void BetweenTransport::give_up_on(int peer) {
  const std::string message =
      never_comes(*this, peer) ? explain_end(*this, peer) : explain_timeout(*this, peer);
  gave_up_.store(true);
  if (!group_.abort(rank(), message)) gave_up_.store(false);
}

void BetweenTransport::throw_if_aborted() const {
  if (!group_.aborted()) return;
  const RootCause cause = *group_.root_cause();
  if (gave_up_.load() && cause.rank == rank()) throw TimeoutError(cause.message);
  throw Aborted(cause);
}

template <class Call>
void BetweenTransport::start(int peer, Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    fail_with_engine(peer, error.what());
  }
}

template <class Wait>
void BetweenTransport::wait(int peer, Wait wait) {
  const WaitWatch::Waiting waiting(watch_, peer);
  try {
    wait(kWithoutEnd);
  } catch (const std::exception& error) {
    throw_if_aborted();
    fail_with_engine(peer, error.what());
  }
  throw_if_aborted();
}

void BetweenTransport::fail_with_engine(int peer, const std::string& error) {
  if (group_.await_explanation()) throw Aborted(*group_.root_cause());
  if (world().machines > 1) {
    fail<CommError>(
        fmt::format("the connection between {} and {} failed ({}): {}; look at the network between "
                    "them",
                    names().of(rank()), names().of(peer), hosts(), error));
  }
  fail<CommError>(
      fmt::format("{} failed between {} and {}: {}; look whether the loopback is blocked, or use "
                  "--replicas in one process",
                  engine_->title(), names().of(rank()), names().of(peer), error));
}

template <class Failure>
void BetweenTransport::fail(const std::string& message) {
  if (group_.abort(rank(), message)) throw Failure(message);
  throw Aborted(*group_.root_cause());
}

/// Of each rank of this process.
std::vector<Near> near_of(JoinedGroup& group, const ConnectChannel& on_machine, int channel) {
  std::vector<Near> near;
  for (int i = 0; i < group.replicas() && !on_machine; ++i) {
    near.push_back({group.local().channel(group.first_rank() + i, channel)});
  }
  if (!on_machine) return near;
  for (auto& transport : on_machine(channel)) {
    Transport& reference = *transport;
    near.push_back({reference, std::move(transport), true});
  }
  return near;
}

}  // namespace

ConnectChannel join_between(JoinedGroup& group, std::shared_ptr<MessageEngine> engine,
                            ConnectChannel on_machine) {
  return [&group, engine = std::move(engine), on_machine = std::move(on_machine)](int channel) {
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<BetweenTransport*> ranks;
    for (Near& each : near_of(group, on_machine, channel)) {
      auto transport = std::make_unique<BetweenTransport>(group, engine, channel, std::move(each));
      ranks.push_back(transport.get());
      transports.push_back(std::move(transport));
    }
    // Not before all are there: where one cannot be made the others go, and an abort follows.
    group.on_abort([ranks] {
      for (BetweenTransport* rank : ranks) rank->wake();
    });
    return transports;
  };
}

}  // namespace ringlet::comm
