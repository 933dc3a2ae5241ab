#include "comm/all_reduce.h"

#include <array>
#include <string>

#include "comm/doubling_all_reduce.h"
#include "comm/library_all_reduce.h"
#include "comm/naive_all_reduce.h"
#include "comm/ring_all_reduce.h"
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
    strategy<NaiveAllReduce>(),           strategy<RingAllReduce>(),
    strategy<DoublingAllReduce>(),        strategy<NcclAllReduce>(),
    strategy<ReduceBroadcastAllReduce>(),
};

}  // namespace

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
  return strategy == NcclAllReduce::kName || strategy == ReduceBroadcastAllReduce::kName;
}

std::vector<std::string_view> all_reduce_strategies() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  return names;
}

}  // namespace ringlet::comm
