// All-reduce by the transport's library, NCCL, Gloo or MPI, in ways of its own.
//
//   nccl      ncclAllReduce: NCCL chooses among rings, trees and NVLink's own sums by its model of
//             the machine; what the other strategies are measured against
//   gloo      gloo::allreduce: a ring in segments of at most 1 MiB, two of them on the way at once
//   mpi       MPI_Iallreduce: Open MPI chooses among its algorithms by size and ranks
//   library   ncclReduce to rank 0, then ncclBroadcast; or Gloo's or MPI's. It looks like the naive
//             star, but NCCL's two calls are pipelined rings: at most twice as slow as all-reduce
//
// The library decides which bytes go where and in which order numbers are added. No library
// promises that this stays the same. Costs are those of a ring, and of two pipelined rings after
// each other.
#pragma once

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/needs.h"

namespace ringlet::comm {

/// All throw ContractError as engine_of().
class EngineAllReduce : public AllReduce {
 public:
  static PathCost path_cost(int ranks, double bytes);

  const char* name() const override { return name_; }
  void run(Stream& stream, View data, ReduceOp op) override {
    engine_.all_reduce(stream, data, op);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 protected:
  EngineAllReduce(Transport& transport, const char* name, Needs needs);

 private:
  const char* name_;
  CollectiveEngine& engine_;
};

class NcclAllReduce final : public EngineAllReduce {
 public:
  static constexpr const char* kName = "nccl";
  static constexpr Needs kNeeds = Needs::nccl;
  explicit NcclAllReduce(Transport& transport) : EngineAllReduce(transport, kName, kNeeds) {}
};

class GlooAllReduce final : public EngineAllReduce {
 public:
  static constexpr const char* kName = "gloo";
  static constexpr Needs kNeeds = Needs::gloo;
  explicit GlooAllReduce(Transport& transport) : EngineAllReduce(transport, kName, kNeeds) {}
};

class MpiAllReduce final : public EngineAllReduce {
 public:
  static constexpr const char* kName = "mpi";
  static constexpr Needs kNeeds = Needs::mpi;
  explicit MpiAllReduce(Transport& transport) : EngineAllReduce(transport, kName, kNeeds) {}
};

class ReduceBroadcastAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "library";
  static constexpr Needs kNeeds = Needs::any_engine;
  static PathCost path_cost(int ranks, double bytes);

  explicit ReduceBroadcastAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 private:
  CollectiveEngine& engine_;
};

}  // namespace ringlet::comm
