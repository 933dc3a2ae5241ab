// Group: the ranks of this process, and what joins them to those of other processes.
//
// rank = process * replicas + local rank, size = processes * replicas. The threads of one process
// are a LocalGroup (transport/local/local_transport.h), and that is the world; of several processes
// each has a ProcessGroup (process_group.h). Who holds a Group need not know which. It is
// made before the ranks' threads and outlives them. After an abort it is spent: no rank exchanges
// anything over it again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/trace.h"
#include "comm/core/clock_reading.h"
#include "comm/core/rank_text.h"
#include "comm/core/transport.h"

namespace ringlet::comm {

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int replicas() const { return replicas_; }      ///< ranks of this process; as many in each
  int first_rank() const { return first_rank_; }  ///< of this process
  int size() const { return size_; }              ///< ranks of the world
  int process() const { return process_of(first_rank_); }
  int processes() const { return process_of(size_); }
  int process_of(int rank) const { return rank / replicas_; }
  bool holds(int rank) const { return first_rank_ <= rank && rank < first_rank_ + replicas_; }

  /// How many machines the processes are on.
  virtual int machines() const { return 1; }
  /// The transport of a rank of this process. Ranks are numbered as in the world.
  Transport& transport(int rank) { return channel(rank, 0); }

  /// A channel is a transport of each rank to all others. What goes over one never meets what goes
  /// over another, so that a rank may exchange over several at once. An abort ends all.
  static constexpr int kMostChannels = 8;
  /// How many there are, numbered from 0: the one of transport(), and those that were opened.
  virtual int channels() const = 0;
  virtual Transport& channel(int rank, int number) = 0;
  /// Opens so many more. Collective over the processes, before any rank exchanges something; takes
  /// as long as joining. Throws CommError, Aborted; ContractError beyond kMostChannels.
  virtual void open_channels(int count) = 0;
  /// As Transport::abort, for the whole world. Any thread. True for the first in this process.
  virtual bool abort(int rank, const std::string& message) noexcept = 0;
  /// Gives all processes one value under `key`: the first of those that they bring. At least one
  /// brings `mine`; all call this, each on one thread at a time. A process's second call with a key
  /// is about a second value. Throws TimeoutError naming the key, or Aborted.
  virtual std::string agree(const std::string& key, const std::optional<std::string>& mine,
                            double timeout_seconds) = 0;
  /// Memory of zeros that all processes of this machine map, at the beginning of a cache line. All
  /// call this, with the same key, as for agree(). Throws CommError, Aborted.
  virtual std::shared_ptr<void> share(const std::string& key, std::int64_t bytes,
                                      double timeout_seconds) = 0;
  /// What messages call the ranks from now on, in this process. Any thread.
  virtual void name_ranks(const RankNames::Words& words) { names_.set(words); }
  const RankNames& names() const { return names_; }
  /// Process 0's clock beside this process's. Throws TimeoutError, Aborted.
  virtual ClockReading read_clock(double /*timeout_seconds*/) { return {.at_ns = now_ns()}; }

 protected:
  Group(int first_rank, int replicas, int size)
      : first_rank_(first_rank), replicas_(replicas), size_(size) {}

 private:
  int first_rank_;
  int replicas_;
  int size_;
  RankNames names_;
};

}  // namespace ringlet::comm
