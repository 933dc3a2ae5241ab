// All-reduce by the transport's library, NCCL or Gloo, in ways of its own.
//
//   nccl      ncclAllReduce: NCCL chooses among rings, trees and NVLink's own sums by its model of
//             the machine; what the other strategies are measured against
//   gloo      gloo::allreduce: a ring in segments of at most 1 MiB, two of them on the way at once
//   library   ncclReduce to rank 0, then ncclBroadcast; or Gloo's. It looks like the naive star,
//             but NCCL's two calls are pipelined rings, at most twice as slow as an all-reduce
//
// The library decides which bytes go where and in which order numbers are added. Neither library
// promises that this stays the same.
#pragma once

#include <string_view>

#include "comm/all_reduce/all_reduce.h"

namespace ringlet::comm {

/// All throw ContractError where the transport lacks the engine.
class EngineAllReduce : public AllReduce {
 public:
  const char* name() const override { return name_; }
  void run(Stream& stream, View data, ReduceOp op) override {
    engine_.all_reduce(stream, data, op);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return std::nullopt; }

 protected:
  EngineAllReduce(Transport& transport, const char* name);

 private:
  const char* name_;
  CollectiveEngine& engine_;
};

class NcclAllReduce final : public EngineAllReduce {
 public:
  static constexpr const char* kName = "nccl";
  explicit NcclAllReduce(Transport& transport) : EngineAllReduce(transport, kName) {}
};

class GlooAllReduce final : public EngineAllReduce {
 public:
  static constexpr const char* kName = "gloo";
  explicit GlooAllReduce(Transport& transport) : EngineAllReduce(transport, kName) {}
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

/// Whether `engine`, a name or "" for none, runs `strategy`, which needs an engine.
bool runs_on(std::string_view strategy, std::string_view engine);
/// Name of the transport's engine, or "" without one.
std::string_view engine_name(Transport& transport);
/// The flag that brings the engine which the strategy needs: "--transport nccl".
const char* engine_need(std::string_view strategy);

}  // namespace ringlet::comm
