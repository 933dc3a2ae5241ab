// AutoAllReduce: picks another strategy by the size of the data. It follows a table that was
// measured for such ranks, or else the costs that the strategies state, with round figures for the
// transport. Over NCCL it takes NCCL's own all-reduce, which picks by
// itself.
//
// Every rank picks without asking the others, so all ranks must have the same table and strategies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/strategies.h"
#include "comm/all_reduce/strategy_table.h"

namespace ringlet::comm {

class AutoAllReduce final : public AllReduce {
 public:
  static constexpr const char* kName = "auto";

  /// Passes over ranges of the table whose strategy is not among `strategies`, or cannot run over
  /// this transport.
  AutoAllReduce(Transport& transport, const Strategies& strategies,
                const StrategyTable& table = {});
  const char* name() const override { return kName; }
  const char* name_for(std::int64_t bytes) const override { return strategy_for(bytes).name(); }
  void run(Stream& stream, View data, ReduceOp op) override;
  bool run_short(Stream& stream, const Flat& data, ReduceOp op) override;
  /// elements_sent() of the strategy that is picked for f32 [count].
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override;

  /// What it goes by.
  const StrategyTable& table() const { return table_; }
  /// Whether that came of stated costs, since nothing of the given table could be used.
  bool goes_by_costs() const { return goes_by_costs_; }

 private:
  AllReduce& strategy_for(std::int64_t bytes) const;

  /// What look_up() says of the own number of ranks, found without a name.
  struct Range {
    std::int64_t from_bytes;
    AllReduce* strategy;
  };

  StrategyTable table_;
  bool goes_by_costs_ = false;
  std::map<std::string, std::unique_ptr<AllReduce>, std::less<>> strategies_;  // of the table
  std::vector<Range> ranges_;
};

/// The strategies that it picks from without a library: those that can run over this transport.
/// Those that send nothing come first, for it takes the first of equals.
std::vector<Strategy> strategies_over(Transport& transport, const Strategies& strategies);

/// For each number of bytes the candidate of which seconds(candidate, bytes) are the fewest; of
/// several, the first. Beyond 1 GiB that of 1 GiB. One that is the fastest only between two powers
/// of two may be missed.
StrategyTable modeled_table(
    const std::vector<Strategy>& candidates, int ranks,
    const std::function<double(const Strategy& candidate, double bytes)>& seconds);
/// The same by the model, for ranks that are all alike.
StrategyTable modeled_table(const std::vector<Strategy>& candidates, int ranks,
                            const CostModel& model);

}  // namespace ringlet::comm
