#include "learn/check/lockstep.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "base/error.h"
#include "comm/schedule/check.h"
#include "comm/schedule/recording_peers.h"
#include "comm/transport/peer_ranges.h"
#include "kernels/meta_device.h"
#include "kernels/reduce.h"
#include "learn/check/data.h"
#include "learn/check/hooks.h"
#include "learn/learn.h"

namespace ringlet::learn {

using comm::Combine;
using comm::kNobody;

/// What a rank does at the moment, and the messages that have come to it.
struct Lockstep::Rank {
  std::binary_semaphore turn{0};
  std::thread thread{};
  int to = kNobody, from = kNobody;  // of its exchange: sides that are open
  bool meets = false;
  bool has_ended = false;
  int exchanges = 0;
  std::map<int, std::deque<std::vector<std::byte>>> mail{};  // by sender
  std::vector<std::byte> taken{};                            // of its exchange
  std::vector<Written> written{};                            // of each element of its data
  comm::RankSchedule* notes = nullptr;
  View shown{};

  bool can_go_on() const { return !has_ended && to == kNobody && from == kNobody && !meets; }
};

class LockstepPeers final : public comm::PeerRanges {
 public:
  LockstepPeers(Lockstep& lockstep, comm::Transport& transport, comm::RankSchedule& notes)
      : PeerRanges(transport, operations_, std::int64_t{1} << 60),
        lockstep_(lockstep),
        notes_(notes, device_, 0) {}

  void open(Stream& stream, const View& mine) override {
    lockstep_.at(rank()).shown = mine;
    notes_.open(stream, mine);
    lockstep_.meet(rank());
    set_kind(mine);
    for (int other = 0; other < lockstep_.size(); ++other) {
      const View& theirs = lockstep_.at(other).shown;
      if (theirs.bytes() != mine.bytes() || theirs.dtype() != mine.dtype()) lockstep_.stop();
      set_range(other, theirs.data());
    }
    is_open_ = true;
  }
  void meet(Stream& stream) override {
    notes_.meet(stream);
    lockstep_.meet(rank());
  }
  void close(Stream& stream) override {
    meet(stream);
    is_open_ = false;
  }
  void leave(Stream& /*stream*/) override {}
  void abandon(Stream& /*stream*/, const char* /*reason*/) noexcept override {}
  void settle() noexcept override {}

  void reduce_for_all(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override {
    check_open();
    notes_.reduce_for_all(stream, op, begin, end);
    PeerRanges::reduce_for_all(stream, op, begin, end);
  }
  void copy(Stream& stream, const ConstView& x, const View& y) override {
    notes_.copy(stream, x, y);
    PeerRanges::copy(stream, x, y);
  }
  void reduce_into(Stream& stream, ReduceOp op, const View& mine) override {
    check_open();
    notes_.reduce_into(stream, op, mine);
    PeerRanges::reduce_into(stream, op, mine);
  }
  void reduce_own(Stream& stream, ReduceOp op, std::int64_t begin, std::int64_t end) override {
    check_open();
    notes_.reduce_own(stream, op, begin, end);
    PeerRanges::reduce_own(stream, op, begin, end);
  }
  void reduce_part(Stream& stream, ReduceOp op, std::int64_t begin, const View& mine) override {
    check_open();
    notes_.reduce_part(stream, op, begin, mine);
    PeerRanges::reduce_part(stream, op, begin, mine);
  }
  void reduce_to(Stream& stream, ReduceOp op, int root, std::int64_t begin,
                 std::int64_t end) override {
    check_open();
    notes_.reduce_to(stream, op, root, begin, end);
    PeerRanges::reduce_to(stream, op, root, begin, end);
  }
  void spread(Stream& stream, int root, std::int64_t begin, std::int64_t end) override {
    check_open();
    notes_.spread(stream, root, begin, end);
    PeerRanges::spread(stream, root, begin, end);
  }
  void read(Stream& stream, int of, std::int64_t begin, const View& mine) override {
    check_open();
    notes_.read(stream, of, begin, mine);
    PeerRanges::read(stream, of, begin, mine);
  }

 private:
  int rank() const { return transport().rank(); }
  void check_open() {
    if (is_open_) return;
    lockstep_.board_.conclude(
        Verdict::crash,
        fmt::format("rank {} works on memory that nobody shows: only between open() "
                    "and close() do others show theirs",
                    rank()));
  }

  static inline const comm::MemoryOperations operations_{};
  MetaDevice device_;  // of windows, which there are none
  Lockstep& lockstep_;
  comm::RecordingPeers notes_;
  bool is_open_ = false;
};

class LockstepTransport final : public comm::Transport {
 public:
  LockstepTransport(Lockstep& lockstep, const comm::World& world, comm::RankSchedule& notes)
      : Transport(world), lockstep_(lockstep), peers_(lockstep, *this, notes) {}

  /// The peers first: the base would throw through the learner's code.
  void exchange(Stream& stream, int to, ConstView out, int from, View in,
                Combine combine) override {
    check_peer("sends to", to);
    check_peer("receives from", from);
    if (to != kNobody) lockstep_.check_place(rank(), out, "sends");
    if (from != kNobody) lockstep_.check_place(rank(), in, "receives into");
    Transport::exchange(stream, to, out, from, in, combine);
  }
  void abort(const std::string& /*reason*/) noexcept override {}
  std::optional<comm::RootCause> root_cause() const override { return std::nullopt; }
  comm::FlightRecorder& recorder() override { return recorder_; }
  std::optional<comm::RankStatus> look_at(int /*rank*/) const override { return std::nullopt; }
  comm::PeerAccess* peer_access() override { return world().machines == 1 ? &peers_ : nullptr; }
  int machine_of(int rank) const override { return lockstep_.network_.machine(rank); }
  comm::CostModel typical_costs() const override {
    return world().machines == 1 ? lockstep_.network_.inside : lockstep_.network_.between;
  }
  comm::CostModel typical_costs_inside() const override { return lockstep_.network_.inside; }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override {
    lockstep_.exchange(rank(), to, out, from, in, combine);
    if (from == kNobody) return;
    const std::vector<std::byte>& came = lockstep_.at(rank()).taken;
    if (combine == Combine::copy) {
      if (!came.empty()) std::memcpy(in.data(), came.data(), came.size());
    } else if (!came.empty()) {
      reduce_into(stream, comm::operation_of(combine),
                  ConstView(came.data(), in.shape(), in.dtype()), in);
    }
  }

 private:
  void check_peer(const char* what, int peer) {
    if (peer == kNobody || (0 <= peer && peer < size() && peer != rank())) return;
    lockstep_.board_.conclude(Verdict::wrong_peer,
                              peer == rank()
                                  ? fmt::format("rank {} {} itself", rank(), what)
                                  : fmt::format("rank {} {} rank {}; there are ranks 0 to {}",
                                                rank(), what, peer, size() - 1));
  }

  Lockstep& lockstep_;
  comm::FlightRecorder recorder_;
  LockstepPeers peers_;
};

Lockstep::Lockstep(const comm::Network& network, const LockstepOptions& options, Board& board)
    : network_(network), options_(options), board_(board) {
  schedule_.ranks.resize(static_cast<std::size_t>(network.ranks));
  for (int rank = 0; rank < network.ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    comm::RankSchedule& notes = schedule_.ranks[static_cast<std::size_t>(rank)];
    ranks_.back()->notes = &notes;
    transports_.push_back(
        std::make_unique<LockstepTransport>(*this, network.world_of(rank), notes));
  }
}

Lockstep::~Lockstep() {
  body_ = nullptr;
  for (const auto& rank : ranks_) {
    if (!rank->thread.joinable()) continue;
    rank->turn.release();
    rank->thread.join();
  }
}

comm::Transport& Lockstep::transport(int rank) {
  return *transports_[static_cast<std::size_t>(rank)];
}

namespace {

/// The program uses the data before and after the collective.
void note_use(comm::RankSchedule& rank) {
  rank.steps.push_back(
      {.to = static_cast<std::int32_t>(rank.touches.size()), .kind = comm::StepKind::touch});
  rank.touches.push_back({.kind = comm::Touch::Kind::use, .mine = rank.data});
}

}  // namespace

void Lockstep::run(std::span<const View> data, const std::function<void(int rank)>& body) {
  data_.assign(data.begin(), data.end());
  schedule_.lengths.clear();
  for (int rank = 0; rank < size(); ++rank) {
    Rank& mine = at(rank);
    const View& own = data_[static_cast<std::size_t>(rank)];
    *mine.notes = {.data = comm::range_of(own)};
    note_use(*mine.notes);
    mine.exchanges = 0;
    mine.has_ended = false;
    mine.written.assign(static_cast<std::size_t>(own.count()), {});
  }
  body_ = &body;
  for (int rank = 0; rank < size(); ++rank) {
    if (!at(rank).thread.joinable()) at(rank).thread = std::thread([this, rank] { live(rank); });
  }
  const int threads = g_live_threads;
  at(0).turn.release();
  all_have_ended_.acquire();
  if (g_live_threads > threads) {
    board_.conclude(Verdict::crash, "a rank returns and leaves a thread running that it started");
  }
  for (comm::RankSchedule& rank : schedule_.ranks) {
    note_use(rank);
    rank.addresses.resize(rank.steps.size());
  }
}

void Lockstep::live(int rank) {
  while (true) {
    at(rank).turn.acquire();
    if (body_ == nullptr) return;
    run_body(rank);
  }
}

void Lockstep::run_body(int rank) {
  board_.note(rank, 0);
  try {
    (*body_)(rank);
  } catch (...) {
    conclude_of_exception(board_, rank);
  }
  at(rank).has_ended = true;
  const auto has_ended = [](const auto& other) { return other->has_ended; };
  if (std::all_of(ranks_.begin(), ranks_.end(), has_ended)) {
    all_have_ended_.release();
  } else if (!give_turn(rank)) {
    stop();
  }
}

/// To the next rank that can go on; false where there is none.
bool Lockstep::give_turn(int rank) {
  for (int step = 1; step <= size(); ++step) {
    Rank& next = at((rank + step) % size());
    if (!next.can_go_on()) continue;
    next.turn.release();
    return true;
  }
  return false;
}

/// The others go on until this rank can.
void Lockstep::wait_for_turn(int rank) {
  Rank& mine = at(rank);
  if (mine.can_go_on()) return;
  if (!give_turn(rank)) stop();
  mine.turn.acquire();
  board_.note(rank, mine.exchanges);
}

/// No rank can go on, or two of them do not fit.
void Lockstep::stop() {
  for (comm::RankSchedule& rank : schedule_.ranks) rank.addresses.resize(rank.steps.size());
  const comm::Problem problem = comm::find_problem(schedule_);
  const bool is_circle = problem.kind == comm::Problem::Kind::circle;
  board_.conclude(is_circle ? Verdict::deadlock : Verdict::unmatched, problem.text);
}

void Lockstep::check_thread(int rank) {
  if (std::this_thread::get_id() == at(rank).thread.get_id()) return;
  board_.conclude(Verdict::crash,
                  fmt::format("rank {} communicates on a thread that it has started; only the "
                              "thread of run() may",
                              rank));
}

/// A part that begins in the data ends there.
void Lockstep::check_place(int rank, const ConstView& part, const char* what) {
  const View& own = data_[static_cast<std::size_t>(rank)];
  const auto at_of = [](const ConstView& view) {
    return reinterpret_cast<std::intptr_t>(view.address());
  };
  const std::int64_t begin = at_of(part) - at_of(own), end = begin + part.bytes();
  const bool is_near = begin > -Data::kGuardBytes && begin < own.bytes() + Data::kGuardBytes;
  if (!is_near || part.bytes() == 0 || (begin >= 0 && end <= own.bytes())) return;
  const std::int64_t one = size_of(own.dtype());
  board_.conclude(Verdict::out_of_range,
                  fmt::format("rank {} {} {} bytes from element {} on; its data have {}", rank,
                              what, part.bytes(), begin / one, own.count()));
}

void Lockstep::exchange(int rank, int to, const ConstView& out, int from, const View& in,
                        Combine combine) {
  check_thread(rank);
  if (to == kNobody && from == kNobody) return;
  Rank& mine = at(rank);
  const std::int64_t elements = data_[static_cast<std::size_t>(rank)].count();
  if (++mine.exchanges > 64 * size() + 4 * elements) {  // no right one has as many
    board_.conclude(Verdict::endless, fmt::format("rank {} is in its exchange {} and does not end",
                                                  rank, mine.exchanges));
  }
  board_.note(rank, mine.exchanges);
  comm::Step step{.to = to, .from = from, .combine = combine};
  comm::Addresses places;
  if (to != kNobody) {
    step.out = schedule_.number_of(out.bytes());
    places.out = comm::address_of(out);
    mine.to = to;
    const auto* const bytes = static_cast<const std::byte*>(out.data());
    at(to).mail[rank].emplace_back(bytes, bytes + out.bytes());
    if (out.bytes() <= options_.eager_bytes) mine.to = kNobody;
  }
  if (from != kNobody) {
    step.in = schedule_.number_of(in.bytes());
    places.in = comm::address_of(in);
    mine.from = from;
    mine.taken.resize(static_cast<std::size_t>(in.bytes()));
  }
  mine.notes->steps.push_back(step);
  mine.notes->addresses.resize(mine.notes->steps.size());
  mine.notes->addresses.back() = places;
  if (to != kNobody) take_message(to);
  take_message(rank);
  wait_for_turn(rank);
  if (from == kNobody) return;
  const std::int64_t one = size_of(data_[static_cast<std::size_t>(rank)].dtype());
  const std::int64_t begin = (places.in - mine.notes->data.begin) / one;
  for (std::int64_t element = begin; element < begin + in.bytes() / one; ++element) {
    if (element < 0 || element >= static_cast<std::int64_t>(mine.written.size())) break;
    mine.written[static_cast<std::size_t>(element)] = {mine.exchanges, from};
  }
}

/// The rank takes the message that it waits for, if that has come.
void Lockstep::take_message(int rank) {
  Rank& mine = at(rank);
  if (mine.from == kNobody) return;
  const int sender = mine.from;
  auto& mail = mine.mail[sender];
  if (mail.empty()) return;
  if (mail.front().size() != mine.taken.size()) stop();
  mine.taken = std::move(mail.front());
  mail.pop_front();
  mine.from = kNobody;
  if (mail.empty() && at(sender).to == rank) at(sender).to = kNobody;
}

void Lockstep::meet(int rank) {
  check_thread(rank);
  at(rank).meets = true;
  board_.note(rank, at(rank).exchanges);
  const auto meets = [](const auto& other) { return other->meets; };
  if (std::all_of(ranks_.begin(), ranks_.end(), meets)) {
    for (const auto& other : ranks_) other->meets = false;
  }
  wait_for_turn(rank);
}

Lockstep::Written Lockstep::last_written(int rank, std::int64_t element) const {
  return at(rank).written[static_cast<std::size_t>(element)];
}

void conclude_of_exception(Board& board, int rank) {
  const std::string who = rank < 0 ? "a rank" : fmt::format("rank {}", rank);
  try {
    throw;
  } catch (const NotWrittenYet& nothing) {
    board.conclude(Verdict::not_written, nothing.what());
  } catch (const NoMemoryError&) {
    board.conclude(Verdict::crash, who +
                                       " reads or writes its data itself; the ranks of a world "
                                       "this large have no memory: exchange() and finish() do it");
  } catch (const ContractError& error) {
    const std::string message = error.what();
    if (message.find("View::slice") != std::string::npos) {
      board.conclude(Verdict::out_of_range, who + " takes a slice that reaches beyond its view");
    }
    board.conclude(Verdict::crash, fmt::format("{} throws \"{}\"", who, message));
  } catch (const std::exception& error) {
    int status = 0;
    char* const name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
    board.conclude(Verdict::crash, fmt::format("{} throws {} \"{}\"", who,
                                               name == nullptr ? "" : name, error.what()));
  } catch (...) {
    board.conclude(Verdict::crash, who + " throws something that is no std::exception");
  }
}

}  // namespace ringlet::learn
