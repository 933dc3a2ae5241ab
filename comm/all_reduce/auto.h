// The strategy that picks another one by the size of the data: from a table that was measured on
// this machine, or from the cost model with round figures for the transport. Over NCCL, whose own
// all-reduce picks by itself, that one.
//
// Every rank has to have the same table: it picks without asking the others.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/strategy_table.h"

namespace ringlet::comm {

class AutoAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "auto";

  /// Ranges of the table whose strategy this transport cannot run are passed over.
  explicit AutoAllReduce(Transport& transport, const StrategyTable& table = {});
  const char* name() const override { return kName; }
  const char* name_for(std::int64_t bytes) const override { return strategy_for(bytes).name(); }
  void run(Stream& stream, View data, ReduceOp op) override;
  /// Those of the strategy for [count] of f32.
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

 private:
  AllReduce& strategy_for(std::int64_t bytes) const;

  StrategyTable table_;
  std::map<std::string, std::unique_ptr<AllReduce>, std::less<>> strategies_;  // of the table
};

}  // namespace ringlet::comm
