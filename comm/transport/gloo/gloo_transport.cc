#include "comm/transport/gloo/gloo_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include "comm/processes/process_group.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/gloo/gloo_collectives.h"
#include "comm/transport/gloo/gloo_mesh.h"
#include "comm/transport/peer_memory.h"
#include "kernels/exception_message.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// The header that goes before each message's data.
struct Header {
  std::int64_t bytes = 0;
  bool inside_collective = false;
  CollectiveRecord collective;
};
static_assert(std::is_trivially_copyable_v<Header>);

/// Memory that Gloo knows. One thread uses it; any thread may call wake().
class Staging {
 public:
  explicit Staging(GlooMesh& mesh) : mesh_(mesh) {}

  std::byte* data() { return memory_.data(); }

  void reserve(std::size_t bytes) {
    if (buffer_ && bytes <= memory_.size()) return;
    const std::lock_guard lock(mutex_);
    buffer_.reset();
    memory_.resize(bytes);
    buffer_ = mesh_.createUnboundBuffer(memory_.data(), bytes);
  }
  void send(int process, std::uint64_t slot, std::size_t bytes) {
    buffer_->send(process, slot, 0, bytes);
  }
  void receive(int process, std::uint64_t slot, std::size_t bytes) {
    buffer_->recv(process, slot, 0, bytes);
  }
  /// False if woken.
  bool wait_sent(std::chrono::milliseconds timeout) { return buffer_->waitSend(nullptr, timeout); }
  bool wait_received(std::chrono::milliseconds timeout) {
    return buffer_->waitRecv(nullptr, timeout);
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    if (!buffer_) return;
    buffer_->abortWaitSend();
    buffer_->abortWaitRecv();
  }

 private:
  GlooMesh& mesh_;
  std::mutex mutex_;  // guards buffer_ against wake()
  std::vector<std::byte> memory_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

enum class Part : std::uint64_t { header, data };

/// What joins a rank with those that Gloo need not reach.
struct Near {
  Transport& transport;
  std::unique_ptr<Transport> owned{};  ///< the same, where it is shared memory
  bool is_whole_machine = false;       ///< it reaches all ranks of the machine, not of the process
};

class GlooTransport final : public Transport, public CollectiveEngine {
 public:
  GlooTransport(ProcessGroup& group, std::shared_ptr<GlooMesh> mesh, Near near)
      : Transport(near.transport.world()),
        group_(group),
        mesh_(std::move(mesh)),
        near_(std::move(near)),
        local_(near_.transport),
        header_out_(*mesh_),
        header_in_(*mesh_),
        data_out_(*mesh_),
        data_in_(*mesh_),
        context_(std::make_shared<GlooContext>(mesh_)) {
    header_out_.reserve(sizeof(Header));
    header_in_.reserve(sizeof(Header));
  }

  void abort(const std::string& reason) noexcept override { group_.abort(rank(), reason); }
  std::optional<RootCause> root_cause() const override { return group_.root_cause(); }
  FlightRecorder& recorder() override { return local_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return local_.look_at(other); }
  CollectiveEngine* engine() override { return group_.replicas() == 1 ? this : nullptr; }
  std::string hosts() const override { return group_.hosts(); }
  std::string path() const override {
    if (world().machines == 1) return {};
    return fmt::format("gloo between {} machines{}", world().machines,
                       near_.is_whole_machine ? ", shm inside" : "");
  }
  int machine_of(int of) const override { return local_.machine_of(of); }
  /// Between machines: round figures for Ethernet of 1 Gbit/s.
  CostModel typical_costs() const override {
    if (world().machines == 1) return Transport::typical_costs();
    return {100e-6, 1 / 115e6, 1 / 20e9};
  }
  CostModel typical_costs_inside() const override { return {2e-6, 1 / 5e9, 1 / 16e9}; }

  const char* engine_name() const override { return "gloo"; }
  void all_reduce(Stream& stream, View data, ReduceOp op) override {
    call_gloo(stream, data, [op](const GlooCall& call) { gloo_all_reduce(call, op); });
  }
  void reduce_and_broadcast(Stream& stream, View data, ReduceOp op) override {
    call_gloo(stream, data, [op](const GlooCall& call) { gloo_reduce_and_broadcast(call, op); });
  }

  /// Gets this rank out of its wait; the group is aborted already. Any thread.
  void wake() {
    for (Staging* staging : {&header_out_, &header_in_, &data_out_, &data_in_}) staging->wake();
    context_->break_off();
  }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  bool is_remote(int peer) const {
    if (peer == kNobody || group_.holds(peer)) return false;
    return !near_.is_whole_machine || !group_.on_this_machine(peer);
  }
  void start_sending_header(int to, std::int64_t bytes);
  void start_sending(int to, const ConstView& out);
  void start_receiving(int from);
  void finish_receiving_header(int from, std::int64_t bytes);
  void finish_receiving(Stream& stream, int from, const View& in, Combine combine);
  void finish_sending(int to, const ConstView& out);
  void check(int from, const Header& header, std::int64_t bytes);
  std::uint64_t slot(int from, int to, Part part) const {
    const auto pair = static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(size()) +
                      static_cast<std::uint64_t>(to);
    return 2 * pair + static_cast<std::uint64_t>(part);
  }
  template <class Call>
  void call_gloo(Stream& stream, const View& data, Call call);
  void agree_on_bytes(std::int64_t bytes);
  std::chrono::milliseconds patience() const;
  void throw_if_aborted() const;
  template <class Call>
  void start(int peer, Call call);
  template <class Wait>
  void wait(int peer, Wait wait);
  [[noreturn]] void fail_with_gloo(int peer, const std::string& error);
  template <class Failure>
  [[noreturn]] void fail(const std::string& message);

  ProcessGroup& group_;
  std::shared_ptr<GlooMesh> mesh_;
  Near near_;
  Transport& local_;  // near_'s
  Staging header_out_, header_in_, data_out_, data_in_;
  std::shared_ptr<GlooContext> context_;  // of Gloo's own collectives
};

/// What goes over Gloo is started first and awaited last; in between the near half runs to its end.
/// That half waits for near ranks only, whose own near half does not wait for anything remote, so
/// the order cannot deadlock.
void GlooTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                                Combine combine) {
  throw_if_aborted();
  local_.set_timeout(timeout_seconds());
  try {
    if (is_remote(from)) start_receiving(from);
    if (is_remote(to)) start_sending(to, out);
    forward_exchange(local_, stream, is_remote(to) ? kNobody : to, out,
                     is_remote(from) ? kNobody : from, in, combine);
    if (is_remote(from)) finish_receiving(stream, from, in, combine);
    if (is_remote(to)) finish_sending(to, out);
  } catch (...) {
    group_.abort(rank(), message_of_current_exception());  // the local half tells only this process
    throw;
  }
}

void GlooTransport::start_sending_header(int to, std::int64_t bytes) {
  Header header{.bytes = bytes, .collective = {}};
  if (const auto latest = recorder().latest(); latest && latest->inside()) {
    header.inside_collective = true;
    header.collective = *latest;
  }
  std::memcpy(header_out_.data(), &header, sizeof header);
  start(to, [&] {
    header_out_.send(group_.process_of(to), slot(rank(), to, Part::header), sizeof header);
  });
}

void GlooTransport::start_sending(int to, const ConstView& out) {
  const auto bytes = static_cast<std::size_t>(out.bytes());
  data_out_.reserve(bytes);
  if (bytes > 0) std::memcpy(data_out_.data(), out.data(), bytes);
  throw_if_aborted();  // a wake() before reserve() did not reach the new memory
  start_sending_header(to, out.bytes());
  if (bytes == 0) return;
  start(to, [&] { data_out_.send(group_.process_of(to), slot(rank(), to, Part::data), bytes); });
}

void GlooTransport::start_receiving(int from) {
  start(from, [&] {
    header_in_.receive(group_.process_of(from), slot(from, rank(), Part::header), sizeof(Header));
  });
}

void GlooTransport::finish_receiving_header(int from, std::int64_t bytes) {
  wait(from, [&](auto timeout) { return header_in_.wait_received(timeout); });
  Header header;
  std::memcpy(&header, header_in_.data(), sizeof header);
  check(from, header, bytes);
}

void GlooTransport::finish_receiving(Stream& stream, int from, const View& in, Combine combine) {
  finish_receiving_header(from, in.bytes());
  if (in.bytes() == 0) return;

  const auto bytes = static_cast<std::size_t>(in.bytes());
  data_in_.reserve(bytes);
  throw_if_aborted();
  start(from,
        [&] { data_in_.receive(group_.process_of(from), slot(from, rank(), Part::data), bytes); });
  wait(from, [&](auto timeout) { return data_in_.wait_received(timeout); });
  if (combine == Combine::copy) {
    std::memcpy(in.data(), data_in_.data(), bytes);
  } else {
    reduce_into(stream, operation_of(combine), ConstView(data_in_.data(), in.shape(), in.dtype()),
                in);
  }
}

void GlooTransport::finish_sending(int to, const ConstView& out) {
  wait(to, [&](auto timeout) { return header_out_.wait_sent(timeout); });
  if (out.bytes() == 0) return;
  wait(to, [&](auto timeout) { return data_out_.wait_sent(timeout); });
}

void GlooTransport::check(int from, const Header& header, std::int64_t bytes) {
  const CollectiveTag tag = header.inside_collective ? header.collective.tag : CollectiveTag{};
  if (header.bytes == bytes && tag == recorder().current()) return;
  std::optional<CollectiveRecord> sender;
  if (header.inside_collective) sender = header.collective;
  fail<MismatchError>(
      explain_mismatch(from, header.bytes, sender, rank(), bytes, recorder().latest()));
}

/// Each rank compares its length with that of the rank above, from which Gloo's rings receive. All
/// round the ring that holds all ranks to the same length.
void GlooTransport::agree_on_bytes(std::int64_t bytes) {
  const int above = (rank() + 1) % size(), below = (rank() + size() - 1) % size();
  start_receiving(above);
  start_sending_header(below, bytes);
  finish_receiving_header(above, bytes);
  wait(below, [&](auto timeout) { return header_out_.wait_sent(timeout); });
}

template <class Call>
void GlooTransport::call_gloo(Stream& stream, const View& data, Call call) {
  throw_if_aborted();
  if (size() == 1) return;
  const int above = (rank() + 1) % size();
  const Clock::time_point begin = Clock::now();
  try {
    agree_on_bytes(data.bytes());
    if (data.bytes() == 0) return;
    try {
      call(GlooCall{context_, stream, data, patience()});
    } catch (const std::exception& error) {
      throw_if_aborted();
      // A wait that took too long, or a connection that broke after a long while.
      const bool late = std::string_view(error.what()).find("Timed out") != std::string_view::npos;
      if (!late || Clock::now() - begin < patience()) fail_with_gloo(above, error.what());
      fail<TimeoutError>(explain_timeout(*this, above));
    }
  } catch (const std::exception& error) {
    group_.abort(rank(), error.what());
    throw;
  }
}

/// The longest that Gloo may wait.
std::chrono::milliseconds GlooTransport::patience() const {
  constexpr double kLongest = 1e8;  // seconds, some three years
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(std::min(timeout_seconds(), kLongest)));
}

void GlooTransport::throw_if_aborted() const {
  if (group_.aborted()) throw Aborted(*group_.root_cause());
}

template <class Call>
void GlooTransport::start(int peer, Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    fail_with_gloo(peer, error.what());
  }
}

template <class Wait>
void GlooTransport::wait(int peer, Wait wait) {
  const std::chrono::milliseconds longest = patience();
  const Clock::time_point begin = Clock::now();
  try {
    wait(longest);
  } catch (const std::exception& error) {
    throw_if_aborted();
    if (Clock::now() - begin < longest) fail_with_gloo(peer, error.what());
    fail<TimeoutError>(explain_timeout(*this, peer));
  }
  throw_if_aborted();
}

void GlooTransport::fail_with_gloo(int peer, const std::string& error) {
  if (group_.await_explanation()) throw Aborted(*group_.root_cause());
  if (world().machines > 1) {
    fail<CommError>(
        fmt::format("the connection between rank {} and rank {} failed ({}): {}; look at the "
                    "network between them",
                    rank(), peer, hosts(), error));
  }
  fail<CommError>(
      fmt::format("Gloo failed between rank {} and rank {}: {}; look whether the loopback is "
                  "blocked, or use --replicas in one process",
                  rank(), peer, error));
}

template <class Failure>
void GlooTransport::fail(const std::string& message) {
  if (group_.abort(rank(), message)) throw Failure(message);
  throw Aborted(*group_.root_cause());
}

}  // namespace

bool has_gloo() { return true; }

namespace {

/// Ignores SIGPIPE, unless the program has a handler of its own.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

/// Of each rank of this process.
std::vector<Near> near_of(ProcessGroup& group, std::vector<std::unique_ptr<Transport>> on_machine) {
  std::vector<Near> near;
  for (auto& transport : on_machine) {
    Transport& reference = *transport;
    near.push_back({reference, std::move(transport), true});
  }
  for (int i = 0; i < group.replicas() && on_machine.empty(); ++i) {
    near.push_back({group.local().transport(group.first_rank() + i)});
  }
  return near;
}

}  // namespace

std::vector<std::unique_ptr<Transport>> connect_gloo(
    ProcessGroup& group, double timeout_seconds,
    std::vector<std::unique_ptr<Transport>> on_machine) {
  ignore_broken_pipes();
  const bool is_loopback = group.machines() == 1;
  std::vector<Near> near = near_of(group, std::move(on_machine));
  const auto mesh = std::make_shared<GlooMesh>(
      group.rendezvous().place(), is_loopback ? "127.0.0.1" : group.address(), timeout_seconds);
  const auto connecting = std::make_shared<std::atomic<bool>>(true);
  group.on_abort([mesh, connecting] {
    if (connecting->load()) mesh->closeConnections();
  });
  try {
    mesh->connect(group.rendezvous(), timeout_seconds);
  } catch (const Aborted&) {
    throw;
  } catch (const std::exception& error) {
    if (group.await_explanation()) throw Aborted(*group.root_cause());
    if (!is_loopback) {
      throw CommError(
          fmt::format("process {} at {} cannot be connected with the others ({}): {}; look whether "
                      "a firewall lets all ports through between the machines",
                      group.process(), group.address(), group.hosts(), error.what()));
    }
    throw CommError(
        fmt::format("Gloo cannot connect the processes: {}; look whether the loopback is blocked, "
                    "or use --replicas in one process",
                    error.what()));
  }
  connecting->store(false);
  if (group.aborted()) throw Aborted(*group.root_cause());

  std::vector<std::unique_ptr<Transport>> transports;
  for (Near& each : near) {
    auto transport = std::make_unique<GlooTransport>(group, mesh, std::move(each));
    group.on_abort([rank = transport.get()] { rank->wake(); });
    transports.push_back(std::move(transport));
  }
  return transports;
}

}  // namespace ringlet::comm
