// AllReduce: a strategy by which every rank gets the sum (or mean, minimum, maximum) over all
// ranks. Each strategy has a pair of files in this folder; strategies.h knows them by name.
//
// p ranks, n bytes on each. In how many steps, what each rank sends, in which order it adds:
//
//   naive                through rank 0  rank 0 (p-1) n, others n  ((x0 + x1) + x2) + ...
//   tree                 2 ceil(log2 p)  at most n ceil(log2 p)    as doubling, in rank 0
//   ring                 2 (p-1)         2 n (p-1)/p               each chunk in another rotation
//   halving-doubling     2 log2 p        2 n (p-1)/p               (x0 + x4) + (x2 + x6) + ...
//   doubling             log2 p          n log2 p                  ((x0 + x1) + (x2 + x3)) + ...
//   two-level            as a ring       2 n (p-1)/p, on one       a machine's, then theirs
//                                        machine (two_level.h)
//   one-shot             1 meeting       reads n (p-1)             ((x0 + x1) + x2) + ...
//   two-shot             2 meetings      reads n (p-1)/p,          ((x0 + x1) + x2) + ...
//                                        writes n (p-1)/p
//   nccl, gloo, mpi, library             the library's own         the library's own
//   auto                 one of these, by size
//
// halving-doubling and doubling fold where p is no power of two: 2 steps and n bytes more
// (folding.h).
//
// At p = 2 all give the same bits for f32, since a + b = b + a. Narrow floats, too, but for a mean
// whose sum is too large for the type: it is infinite where messages carry the sum, and right by
// one-shot and two-shot, which divide in f32. On every rank the result has the same bytes; only of
// unlike NaNs that are added, doubling leaves each rank its own. Narrow floats are added in f32 and
// rounded: by one-shot and two-shot once, by the others each time that a message arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "comm/all_reduce/cost_model.h"
#include "comm/core/flat.h"
#include "comm/core/transport.h"

namespace ringlet::comm {

class AllReduce {
 public:
  explicit AllReduce(Transport& transport) : transport_(transport) {}
  virtual ~AllReduce() = default;
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  virtual const char* name() const = 0;
  /// Name of the strategy that reduces `bytes` on each rank. It differs from name() only where this
  /// strategy picks another one by size.
  virtual const char* name_for(std::int64_t /*bytes*/) const { return name(); }

  /// data = op of data over all ranks, in place; f32, f16, bf16 or i32 [count], the same count on
  /// every rank. Called on the thread that runs `stream`, stream-ordered like Transport::exchange.
  virtual void run(Stream& stream, View data, ReduceOp op) = 0;
  /// The same, of a strategy that has a shorter way for so few: else false, and nothing is done.
  virtual bool run_short(Stream& /*stream*/, const Flat& /*data*/, ReduceOp /*op*/) {
    return false;
  }

  /// Of a strategy that `narrows_between` (strategies.h): the sum of f32, while what goes between
  /// machines is of `wire`'s type: memory for as many elements as `data` has, of this rank alone.
  virtual void run_narrow(Stream& stream, const View& data, const View& wire);

  /// Elements of [count] that run() sends from this rank, or moves between its own memory and that
  /// of other ranks. Nothing where a library decides.
  virtual std::optional<std::int64_t> elements_sent(std::int64_t count) const = 0;
  /// Bytes of elements_sent().
  std::optional<std::int64_t> bytes_sent(std::int64_t count, DType dtype = DType::f32) const;

 protected:
  /// Finishes a part in which the values of all ranks are combined: for mean, divides by the number
  /// of ranks. To be called once for each part, on the rank that has it first.
  void finish(Stream& stream, View part, ReduceOp op) const;
  Transport& transport() const { return transport_; }
  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }

 private:
  Transport& transport_;
};

/// Makes a strategy on a rank's transport.
using MakeAllReduce = std::function<std::unique_ptr<AllReduce>(Transport& transport)>;

}  // namespace ringlet::comm
