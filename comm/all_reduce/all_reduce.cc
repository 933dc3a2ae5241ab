#include "comm/all_reduce/all_reduce.h"

#include <array>
#include <string>

#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/direct.h"
#include "comm/all_reduce/doubling.h"
#include "comm/all_reduce/halving_doubling.h"
#include "comm/all_reduce/library.h"
#include "comm/all_reduce/naive.h"
#include "comm/all_reduce/ring.h"
#include "comm/all_reduce/tree.h"
#include "comm/collectives.h"
#include "kernels/error.h"

namespace ringlet::comm {

namespace {

struct Strategy {
  std::string_view name;
  std::unique_ptr<AllReduce> (*make)(Transport&);
};

template <class T>
constexpr Strategy strategy() {
  return {T::kName, [](Transport& transport) -> std::unique_ptr<AllReduce> {
            return std::make_unique<T>(transport);
          }};
}

constexpr std::array kStrategies = {
    strategy<NaiveAllReduce>(),    strategy<TreeAllReduce>(),
    strategy<RingAllReduce>(),     strategy<HalvingDoublingAllReduce>(),
    strategy<DoublingAllReduce>(), strategy<OneShotAllReduce>(),
    strategy<TwoShotAllReduce>(),  strategy<NcclAllReduce>(),
    strategy<GlooAllReduce>(),     strategy<ReduceBroadcastAllReduce>(),
    strategy<AutoAllReduce>(),
};

}  // namespace

void AllReduce::finish(Stream& stream, View part, ReduceOp op) const {
  finish_reduction(stream, part, op, size());
}

std::optional<std::int64_t> AllReduce::bytes_sent(std::int64_t count, DType dtype) const {
  const auto elements = elements_sent(count);
  if (!elements) return std::nullopt;
  return *elements * size_of(dtype);
}

std::unique_ptr<AllReduce> make_all_reduce(std::string_view strategy, Transport& transport) {
  std::string known;
  for (const Strategy& candidate : kStrategies) {
    if (candidate.name == strategy) return candidate.make(transport);
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw ContractError("\"" + std::string(strategy) +
                      "\" is no all-reduce strategy; known are: " + known);
}

bool needs_engine(std::string_view strategy) {
  return strategy == NcclAllReduce::kName || strategy == GlooAllReduce::kName ||
         strategy == ReduceBroadcastAllReduce::kName;
}

bool needs_peer_access(std::string_view strategy) {
  return strategy == OneShotAllReduce::kName || strategy == TwoShotAllReduce::kName;
}

std::vector<std::string_view> all_reduce_strategies() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  return names;
}

}  // namespace ringlet::comm
