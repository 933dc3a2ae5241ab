// Communicator: what a replica sees of the other replicas. One a rank.
//
// Every rank starts the same collectives in the same order; each gets a sequence number, a kind, a
// size and a name, which all ranks must agree on (flight_recorder.h) and which errors show.
//
// Two kinds of calls:
//   all_reduce, reduce,                  stream-ordered: they are handed to the stream and return;
//   reduce_scatter, all_gather,          what they throw comes out of Stream::synchronize() (or
//   broadcast, all_to_all                of the call itself, where the stream runs in place).
//                                        Data, name and communicator must live until then.
//   barrier, await_all, require_*,       the host waits until `stream` is idle and then runs them
//   gather_text                          on the calling thread, between host memories whatever the
//                                        stream's device; it gets the error.
// All calls of one communicator must be ordered among themselves: made from one stream, or with a
// synchronize() between two streams. Collectives that shall run side by side need a communicator
// and a transport each.
//
// Whatever is thrown inside a collective aborts the transport first, so that no other rank waits
// for this one in vain. Errors outside of collectives must be reported with abort(). See errors.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/probe.h"
#include "comm/all_reduce/strategies.h"
#include "comm/core/transport.h"
#include "comm/processes/plan_check.h"
#include "kernels/device.h"

namespace ringlet::comm {

struct CommunicatorOptions {
  std::string strategy = "ring";  ///< of all_reduce: one of strategies.names()
  double timeout_seconds = Transport::kDefaultTimeoutSeconds;  ///< longest wait for another rank
  Strategies strategies = {};  ///< Ringlet's, and those that the program has added
  StrategyTable table = {};    ///< for "auto": what was measured; else it picks by costs
};

class Communicator {
 public:
  /// `transport` must outlive the communicator and be used by no other one.
  /// Throws ContractError for an unknown strategy.
  explicit Communicator(Transport& transport, const CommunicatorOptions& options = {});

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const World& world() const { return transport_.world(); }
  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  const char* strategy() const { return all_reduce_->name(); }
  /// Name of the strategy that all_reduce() uses for `bytes`; with `auto`, the one that it picks.
  const char* strategy_for(std::int64_t bytes) const { return all_reduce_->name_for(bytes); }
  /// That of all_reduce_narrow_between().
  const char* strategy_between() const { return narrowing().name; }
  /// How long all_reduce() takes for `bytes` by that strategy's cost, with the transport's
  /// typical_costs(). Nothing for a name that is none of CommunicatorOptions::strategies.
  /// `between`: as all_reduce_narrow_between(), where that is not f32.
  std::optional<double> predicted_seconds(std::int64_t bytes, DType between = DType::f32) const;
  /// By which table `auto` picks. Empty of any other strategy.
  StrategyTable table() const;
  /// Whether that came of stated costs, and not of CommunicatorOptions::table.
  bool goes_by_costs() const;
  /// Lets `auto` pick by this table from now on. The same on all ranks, between collectives.
  void use(const StrategyTable& table);
  /// Of `auto`: times what it could pick from (all_reduce/probe.h), between memories of the host.
  /// Changes nothing. Collective.
  ProbeResult probe(Stream& stream, const ProbeOptions& options = {});
  Transport& transport() const { return transport_; }
  /// Memory from here is reduced fastest: see Transport::allocator().
  Allocator& allocator(Device& device) const { return transport_.allocator(device); }

  /// data = op of data over all ranks, the same bytes on every rank. f32, f16, bf16 or i32; any
  /// shape and layout, every stored element counts.
  void all_reduce(Stream& stream, View data, std::string_view name, ReduceOp op = ReduceOp::sum);
  /// The sum of f32, of which only what goes between machines is narrow: of the type of `wire`,
  /// which is as long as data and this rank's alone. By the strategy that narrows between machines
  /// (two-level), whatever strategy() is.
  void all_reduce_narrow_between(Stream& stream, View data, View wire, std::string_view name);
  /// data = op of data over all ranks, on rank `root`. On the others data is unspecified
  /// afterwards.
  void reduce(Stream& stream, int root, View data, std::string_view name,
              ReduceOp op = ReduceOp::sum);
  /// Part r of data (parts.h) = op of part r over all ranks, on rank r. The rest of data is
  /// unspecified afterwards.
  void reduce_scatter(Stream& stream, View data, std::string_view name,
                      ReduceOp op = ReduceOp::sum);
  /// Part r of `in` = part `rank` of rank r's `out`. Any type. Both have the same number of bytes,
  /// which is divided into p equal parts.
  void all_to_all(Stream& stream, ConstView out, View in, std::string_view name);
  /// data = rank `root`'s data. Any type.
  void broadcast(Stream& stream, int root, View data, std::string_view name);
  /// all = mine of rank 0, of rank 1, ... one after the other. Any type; `all` has size() times the
  /// bytes of `mine`, which are equal on all ranks.
  void all_gather(Stream& stream, ConstView mine, View all, std::string_view name);

  /// Returns when every rank has come here and the stream is idle.
  void barrier(Stream& stream, std::string_view name);
  /// Reserves the memory of `stream` in which a transport works on data of so many bytes.
  void make_room(Stream& stream, std::int64_t bytes);
  /// Before a sum of so many bytes whose ranks have allocated, or launched something for the first
  /// time, since they last met: make_room() and a barrier where a kernel would wait for them
  /// (Transport::waits_in_kernels(), docs/scaling.md), else nothing.
  void meet_before_kernels(Stream& stream, std::int64_t bytes, std::string_view name);
  /// A barrier without a time-out: for the end of work that one rank does while the others wait,
  /// such as a save on a slow disk. It still ends, with Aborted, where a rank fails or dies, and
  /// where its process is stopped for as long as the time-out (report/answer_watch.h).
  void await_all(Stream& stream, std::string_view name);
  /// Every rank's text, in the order of ranks; lengths may differ.
  std::vector<std::string> gather_text(Stream& stream, const std::string& mine,
                                       std::string_view name);
  /// Compares a list of (name, value) pairs over all ranks. Throws MismatchError, on every rank,
  /// naming the first entry that differs, the ranks and their values.
  void require_equal(Stream& stream, const Plan& plan);
  /// Compares data byte by byte, through a 64-bit hash, over all ranks. Throws MismatchError, on
  /// every rank, naming the ranks that differ. Memory of the stream's device; what is not the
  /// host's is copied there to be hashed, a piece at a time.
  void require_identical(Stream& stream, ConstView data, std::string_view name);

  /// To be called after a launch, elsewhere, of a graph that holds collectives of this communicator
  /// with so many `bytes`, when `stream` waits for its end. Only where transport().captures().
  void graph_launched(Stream& stream, std::int64_t bytes, std::string_view name);

  /// Notes what the replica does now, for time-out messages. `what` is a string literal. Any
  /// thread, cheap.
  void set_activity(const char* what) { transport_.recorder().set_activity(what); }
  /// This rank gets on with its work. Others whose time-out has passed then wait on for it
  /// (report/patience.h). Any thread, cheap.
  void note_work() { transport_.recorder().work_clock().note(); }
  /// The same as a function, which must not outlive the transport.
  std::function<void()> note_of_work() {
    return [clock = &transport_.recorder().work_clock()] { clock->note(); };
  }
  /// This rank has failed outside of a collective: everybody else stops with Aborted. Any thread.
  void abort(const std::string& reason) noexcept { transport_.abort(reason); }
  /// Throws Aborted if any rank has failed, or the root cause if this rank has. To be called after
  /// waiting for a GPU's stream: work that was cut short there may end without an error of its own.
  void require_alive() const;

 private:
  struct Collective {
    CollectiveKind kind;
    std::int64_t bytes;
    std::string_view name;
    std::optional<DType> reduces{};  ///< numbers of this type
    ReduceOp op = ReduceOp::sum;
    int root = -1;
  };
  template <class Body>
  void collective(Stream& stream, const Collective& what, Body body);
  void describe(ExchangeDetails& details, const Collective& what);

  template <class Body>
  void host_collective(Stream& stream, CollectiveKind kind, std::int64_t bytes,
                       std::string_view name, Body body);
  const Strategy& narrowing() const;
  std::string where_ranks_are() const;
  std::uint64_t hash_of(Stream& stream, const ConstView& data);

  Transport& transport_;
  Strategies strategies_;
  std::unique_ptr<AllReduce> all_reduce_;
  std::unique_ptr<AllReduce> between_;  // once it is asked for
  std::unique_ptr<Device> host_;        // its streams run in place
  std::vector<std::uint64_t> hashes_;   // of every rank, for require_identical
  std::vector<std::byte> piece_;        // of a device's memory, to be hashed; empty until needed
};

}  // namespace ringlet::comm
