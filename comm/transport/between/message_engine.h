// MessageEngine: what carries messages from process to process, Gloo or MPI. The transport between
// machines stands on one (between_transport.h), and so does all that both have in common.
//
// Whatever fails throws std::exception with the engine's own words. Those say little, and often
// come before the news of the death that caused them: the transport finds out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/between/loop_rest.h"
#include "kernels/reduce_op.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// Tells the messages between two processes apart: from which rank to which, on which channel, and
/// a header from data. Data of different lengths do not match.
struct MessageSlot {
  std::uint64_t pair = 0;   ///< from * ranks + to
  std::uint64_t pairs = 1;  ///< ranks * ranks
  std::uint64_t channel = 0;
  std::uint64_t bytes = 0;  ///< of all data; 0: a header
};

/// Memory that the engine sends from, or receives to. One thread uses it; any may call wake().
///
/// Messages from one process to another under one slot match in order, and are equally long. A
/// buffer is used in one direction at a time.
class MessageBuffer {
 public:
  virtual ~MessageBuffer() = default;
  virtual std::byte* data() = 0;
  /// At least so many bytes; what was there before is lost. Nothing is under way.
  virtual void reserve(std::size_t bytes) = 0;
  /// Starts the message [begin, begin + bytes), and returns at once.
  virtual void send(int process, const MessageSlot& slot, std::size_t begin, std::size_t bytes) = 0;
  virtual void receive(int process, const MessageSlot& slot, std::size_t begin,
                       std::size_t bytes) = 0;
  /// Waits for the oldest message that was sent, or received, and not waited for yet. Throws after
  /// `timeout`. Returns early if woken.
  virtual void wait_sent(std::chrono::milliseconds timeout) = 0;
  virtual void wait_received(std::chrono::milliseconds timeout) = 0;
  /// Ends the wait, or the next one: for a run that was aborted.
  virtual void wake() = 0;
};

/// A call of the engine's own collectives, where every process has one rank. All bring as many
/// elements, at least one.
struct EngineCall {
  Stream& stream;  ///< of the host; reduces, on the calling thread
  View data;
  ReduceOp op;
  std::chrono::milliseconds timeout;
};

/// Shared by the ranks of a process.
class MessageEngine {
 public:
  virtual ~MessageEngine() = default;
  /// "gloo" or "mpi": of --transport, and of the strategy that is all_reduce().
  virtual const char* name() const = 0;
  /// "Gloo" or "MPI".
  virtual const char* title() const = 0;
  virtual std::unique_ptr<MessageBuffer> make_buffer() = 0;
  /// What should sleep while a rank starts messages; null: nothing.
  virtual LoopRest* loop_to_rest() { return nullptr; }

  // data = op of data over all processes. They throw when a wait takes longer than the time-out,
  // and after break_off().
  virtual void all_reduce(const EngineCall& call) = 0;
  /// By two calls: to process 0, and from there to all.
  virtual void reduce_and_broadcast(const EngineCall& call) = 0;
  /// Ends every wait of collectives, now and later, with an exception. Any thread.
  virtual void break_off() = 0;
  /// Grows when something moves inside of a collective. Any thread.
  virtual std::uint64_t moves() const { return 0; }
  /// Whether a thread is in a call of a library that should return at once, and may never. Any
  /// thread.
  virtual bool is_inside() const { return false; }
};

}  // namespace ringlet::comm
