// All-reduce as the transport's library does it: by itself, in ways of its own.
//
//   nccl      ncclAllReduce: NCCL chooses among rings, trees and NVLink's own sums by its model of
//             the machine; what the other strategies are measured against
//   library   ncclReduce to rank 0, then ncclBroadcast. Not the naive star, though it looks like
//             it: both are pipelined rings inside, at most twice as slow as an all-reduce
//
// Which bytes go where, and in which order numbers are added, is the library's own business; NCCL
// gives no promise that it stays the same.
#pragma once

#include "comm/all_reduce.h"

namespace ringlet::comm {

/// Both throw ContractError where the transport has no engine.
class NcclAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "nccl";

  explicit NcclAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 private:
  CollectiveEngine& engine_;
};

class ReduceBroadcastAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "library";

  explicit ReduceBroadcastAllReduce(Transport& transport);
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override;
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 private:
  CollectiveEngine& engine_;
};

}  // namespace ringlet::comm
