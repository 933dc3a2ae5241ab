// Transport: how bytes go from rank to rank. Collectives are written once on top of it.
//
//   exchange(stream, to, out, from, in, combine)
//       sends `out` to rank `to` and receives `in` from rank `from`, as one step. Sending and
//       receiving are paired, so a ring of exchanges cannot deadlock. Either side may be kNobody:
//       so stars, trees and fold-ins are exchanges too.
//
// exchange is stream-ordered. It is called on the host thread that runs `stream` (from a task
// handed to Stream::run(), or on any thread for a stream that runs in place). Work that is enqueued
// later on the same stream may overwrite `out` and read `in`; nothing else is promised. In
// particular a transport for CUDA may return before anything has moved, and it makes its stream
// wait for what its peer has yet to produce, and for its peer to have read `out`. The local
// transport for host memory has moved everything when exchange returns; what goes through shared
// memory has left `out`, and may not have been received.
//
// Messages between two ranks match in order: the k-th send from a to b meets the k-th receive at b
// from a. Both must have the same length and come from the same collective (see FlightRecorder);
// a difference throws MismatchError where the transport can see it.
//
// One object a rank. One exchange at a time per object; abort() and look_at() may come from any
// thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/core/captures.h"
#include "comm/core/cost_model.h"
#include "comm/core/errors.h"
#include "comm/core/flight_recorder.h"
#include "comm/core/peer_access.h"
#include "comm/core/rank_text.h"
#include "comm/core/world.h"
#include "kernels/device.h"
#include "kernels/reduce_op.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// Instead of a rank: this side of the exchange is left out.
inline constexpr int kNobody = -1;

/// How arriving data are combined with `in`. All but `copy` spare the scratch buffer and the pass
/// of a separate operation; they are for f32, f16, bf16 and i32 (kernels/reduce.h says how each is
/// reduced).
enum class Combine : std::uint8_t {
  copy,  ///< in = arriving
  add,   ///< in = in + arriving
  min,   ///< in = min(in, arriving)
  max    ///< in = max(in, arriving)
};

/// The Combine that reduces by `op` as data arrive. For ReduceOp::mean it adds; dividing is left.
Combine combine_of(ReduceOp op);
const char* name_of(Combine combine);  ///< "add"
/// The operation of a Combine that is not `copy`.
ReduceOp operation_of(Combine combine);

/// Whom a channel joins of a world that is a mesh: one of its axes, as one rank sees it.
struct Line {
  std::string axis;        ///< its name; empty: the channel is the world's
  std::vector<int> ranks;  ///< of the world, in the order of the axis
};

/// What is known of a rank from outside.
struct RankStatus {
  std::optional<CollectiveRecord> latest{};  ///< the latest collective that it entered
  Activity activity{};
  std::optional<ExchangeRecord> exchange{};  ///< that it is in
  std::int64_t worked_ns = 0;                ///< when it last got on with its work; 0: never
  std::int64_t seen_ns = 0;                  ///< when this was so
  bool unheard = false;  ///< nothing is known, for a reason that lies with another rank
  bool apart = false;    ///< nothing is to be known: it is not of this channel's line

  bool has_ended() const {
    return activity.what != nullptr && std::string_view(activity.what) == kAtItsEnd;
  }
};

/// Collectives that the transport's library has itself (NCCL, Gloo, MPI). Called like
/// Transport::exchange and stream-ordered like it. data is rank-1, on the stream's device, the same
/// count on every rank.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;
  /// "nccl", "gloo" or "mpi": the library, and the strategy that is all_reduce().
  virtual const char* engine_name() const = 0;
  /// data = op of data over all ranks.
  virtual void all_reduce(Stream& stream, View data, ReduceOp op) = 0;
  /// The same by two calls: the result goes to rank 0, and from there to all.
  virtual void reduce_and_broadcast(Stream& stream, View data, ReduceOp op) = 0;
};

class Transport {
 public:
  static constexpr double kDefaultTimeoutSeconds = 60;

  explicit Transport(const World& world) : world_(world) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const World& world() const { return world_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }

  /// See above. `out` and `in` are rank-1 (empty is legal, and still meets the peer) and are
  /// ignored on a side that is kNobody. They must not overlap, except that `in` may be `out` unless
  /// it is to be copied to: the peer then gets what was there before. Throws TimeoutError or
  /// MismatchError (after having aborted the transport), Aborted when another rank failed,
  /// ContractError for a rank that does not exist or is this one.
  /// Virtual for transports that stand for a part of another one, which does all of this.
  virtual void exchange(Stream& stream, int to, ConstView out, int from, View in,
                        Combine combine = Combine::copy);
  /// The two halves by themselves.
  void send(Stream& stream, int to, ConstView out) { exchange(stream, to, out, kNobody, {}); }
  void receive(Stream& stream, int from, View in, Combine combine = Combine::copy) {
    exchange(stream, kNobody, {}, from, in, combine);
  }

  /// Bytes that this rank has sent so far, without headers, or moved between its own memory and
  /// others'.
  std::int64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

  /// The longest that an exchange may wait for its peers, above 0. Set before the first exchange.
  virtual void set_timeout(double seconds);
  double timeout_seconds() const { return timeout_seconds_; }

  /// Aborts the world: every rank that waits in an exchange, or comes to one, throws Aborted. The
  /// first call in the world is the root cause, later ones change nothing.
  virtual void abort(const std::string& reason) noexcept = 0;
  virtual std::optional<RootCause> root_cause() const = 0;
  /// Some time after an abort: whether a thread of this process is in a call of a library that
  /// should have returned at once. It never will. Any thread.
  virtual bool is_held() const { return false; }

  /// The collectives of the transport's own library; null where there are none.
  virtual CollectiveEngine* engine() { return nullptr; }
  /// Other ranks' memory, where every rank of the world is in reach; else null.
  virtual PeerAccess* peer_access() { return nullptr; }

  /// Whether a rank waits for others in a kernel of its GPU: CUDA may hold back then what another
  /// rank of the process asks for. The same on all ranks.
  virtual bool waits_in_kernels() const { return false; }
  /// Where graphs may hold the transport's calls, on every rank alike; else null.
  virtual Captures* captures() { return nullptr; }
  /// Why they may not although that was wished for; "" where it was not.
  virtual std::string why_no_captures() const { return {}; }

  /// The allocator for data of `device` that collectives shall work on in place. It gives memory
  /// that the other ranks reach; where they reach any memory, it is the device itself. Such memory
  /// is to be freed before the transport ends.
  virtual Allocator& allocator(Device& device) { return device; }

  /// Round figures for the cost model, used until this machine is measured. These are for processes
  /// over a loopback; a transport that knows better overrides them.
  virtual CostModel typical_costs() const { return {30e-6, 1 / 1.5e9, 1 / 20e9}; }
  /// Of a world on several machines: those between the ranks of one, where typical_costs() are
  /// those between machines. Both are the same on every rank: by them all pick the same strategy.
  virtual CostModel typical_costs_inside() const { return typical_costs(); }

  /// The machine of a rank of the world: 0 <= machine < world().machines.
  virtual int machine_of(int /*rank*/) const { return world_.machine; }
  /// What joins the ranks where that is more than one thing, or runs between machines, in words;
  /// else empty.
  virtual std::string path() const { return {}; }
  /// Where the ranks are, for messages, in a world on several machines: "ranks 0 and 1 are on a,
  /// ranks 2 and 3 are on b"; else empty.
  virtual std::string hosts() const { return {}; }

  /// What messages call the world's ranks.
  virtual const RankNames& names() const;

  /// This rank's own recorder.
  virtual FlightRecorder& recorder() = 0;
  /// What `rank` did last, or nothing where its process does not answer.
  virtual std::optional<RankStatus> look_at(int rank) const = 0;
  /// This rank has waited for a while in its collective, which others see by waits_in() from now.
  virtual void show_wait() {}
  /// The collective in which `rank` waits, or waited last, where that is seen without asking its
  /// process.
  virtual std::optional<CollectiveRecord> waits_in(int /*rank*/) const { return std::nullopt; }

  /// The transport to the whole world that this one is a part of; itself where it is none.
  virtual Transport& whole() { return *this; }
  /// The world's number of one of this transport's ranks.
  virtual int in_world(int rank) const { return rank; }
  /// Time-outs tell of these ranks alone. Before the first exchange.
  virtual void set_line(const Line& line) { line_ = line; }
  const Line& line() const { return line_; }

  /// Notes the data that the next exchanges are about. Traces then tell where in it their parts
  /// lie.
  virtual void set_subject(const ConstView& data) {
    subject_ = data.address();
    subject_bytes_ = data.bytes();
  }

  /// Where `part` lies in these data, in bytes from their beginning; -1 for what lies elsewhere.
  std::int64_t offset_of(const ConstView& part) const;

  /// Counts bytes that a PeerAccess has moved.
  void count_moved(std::int64_t bytes) {  // by one thread at a time
    bytes_sent_.store(bytes_sent() + bytes, std::memory_order_relaxed);
  }

 protected:
  /// For a world whose machines are known later than its ranks. Before the first exchange.
  void set_world(const World& world) { world_ = world; }

  /// `exchange` with the contract checked, traced and counted.
  virtual void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                           Combine combine) = 0;
  /// do_exchange() of `inner`, for a transport that stands on others and has checked and traced
  /// already.
  static void forward_exchange(Transport& inner, Stream& stream, int to, ConstView out, int from,
                               View in, Combine combine) {
    inner.do_exchange(stream, to, out, from, in, combine);
  }

 private:
  World world_;
  Line line_;
  const void* subject_ = nullptr;
  std::int64_t subject_bytes_ = 0;
  std::atomic<double> timeout_seconds_{kDefaultTimeoutSeconds};
  std::atomic<std::int64_t> bytes_sent_{0};
};

/// Makes a channel's transports, one for each rank of this process. Collective over the processes.
using ConnectChannel = std::function<std::vector<std::unique_ptr<Transport>>(int channel)>;

}  // namespace ringlet::comm
