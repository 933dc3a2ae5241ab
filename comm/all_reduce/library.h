// All-reduce as the transport's library does it: by itself, in ways of its own.
//
//   nccl      ncclAllReduce: NCCL chooses among rings, trees and NVLink's own sums by its model of
//             the machine; what the other strategies are measured against
//   gloo      gloo::allreduce: a ring in segments of at most 1 MiB, two of them on the way at once
//   library   ncclReduce to rank 0, then ncclBroadcast; or Gloo's. Not the naive star, though it
//             looks like it: NCCL's are pipelined rings inside, at most twice as slow as an
//             all-reduce
//
// Which bytes go where, and in which order numbers are added, is the library's own business; none
// gives a promise that it stays the same.
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

/// Whether the engine of this name ("" for none) runs this strategy of an engine.
bool runs_on(std::string_view strategy, std::string_view engine);
/// That of a transport, or "".
std::string_view engine_name(Transport& transport);
/// What the user has to ask for where a strategy's engine is missing: "--transport nccl".
const char* engine_need(std::string_view strategy);

}  // namespace ringlet::comm
