// AllReduce: a strategy by which every rank gets the sum over all ranks, written on Transport
// alone (but for library_all_reduce.h).
//
// Notation: p ranks, n bytes on each. What each strategy sends, and in which order it adds:
//   naive     star through rank 0     rank 0 (p-1) n, others n      ((x0 + x1) + x2) + ...
//   ring      2 (p-1) steps           2 n (p-1)/p                   each chunk in another rotation
//   doubling  ceil(log2 p) steps      n log2 p                      ((x0 + x1) + (x2 + x3)) + ...
//   nccl, library                     the library's own             the library's own
// At p = 2 all give the same bits, since a + b = b + a. On every rank the result has the same
// bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/transport.h"

namespace ringlet::comm {

class AllReduce {
 public:
  explicit AllReduce(Transport& transport) : transport_(transport) {}
  virtual ~AllReduce() = default;
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  virtual const char* name() const = 0;

  /// data = sum of data over all ranks, in place; f32 [count], the same count on every rank. Called
  /// on the thread that runs `stream`, stream-ordered like Transport::exchange.
  virtual void sum(Stream& stream, View data) = 0;

  /// Bytes that sum() sends from this rank for f32 [count]; nothing where a library decides.
  virtual std::optional<std::int64_t> bytes_sent(std::int64_t count) const = 0;

 protected:
  Transport& transport() const { return transport_; }
  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }

 private:
  Transport& transport_;
};

/// Makes a strategy on a rank's transport: how a strategy that Ringlet does not know is handed
/// over. All ranks must make the same one.
using MakeAllReduce = std::function<std::unique_ptr<AllReduce>(Transport& transport)>;

/// "naive", "ring" or "doubling", and "nccl" or "library" where the transport has an engine. Throws
/// ContractError naming these for any other name.
std::unique_ptr<AllReduce> make_all_reduce(std::string_view strategy, Transport& transport);

/// Whether the strategy is an engine's (Transport::engine).
bool needs_engine(std::string_view strategy);

/// The names that make_all_reduce knows.
std::vector<std::string_view> all_reduce_strategies();

}  // namespace ringlet::comm
