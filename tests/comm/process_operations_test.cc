// Every strategy with every operation on every type between processes: exact, the same bytes on
// every rank, as many bytes sent as the formula says.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/all_reduce/strategies.h"
#include "tests/comm/exact_operations.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

struct ProcessCase {
  std::string strategy;
  Split split;
  bool in_reach = false;  ///< memory that the other processes reach in place
};

bool runs_over(const std::string_view strategy, const Split& split) {
  const bool over_gloo = split.transport == ProcessTransport::gloo;
  if (needs_peer_access(strategy)) return !over_gloo;
  const Needs needs = Strategies().needs_of(strategy);
  if (needs_engine(needs)) {
    return over_gloo && split.replicas == 1 && runs_on(needs, name_of(split.transport));
  }
  return true;
}

std::vector<ProcessCase> process_cases() {
  std::vector<ProcessCase> cases;
  for (const auto transport : {ProcessTransport::shm, ProcessTransport::gloo}) {
    for (const auto& [processes, replicas] :
         {std::pair{1, 1}, {2, 1}, {3, 1}, {5, 1}, {2, 2}, {2, 3}}) {
      const Split split{processes, replicas, transport};
      for (const std::string_view strategy : Strategies().names()) {
        if (!runs_over(strategy, split)) continue;
        cases.push_back({std::string(strategy), split});
        const bool can_be_in_reach = needs_peer_access(strategy) || strategy == "auto";
        if (transport == ProcessTransport::shm && can_be_in_reach) {
          cases.push_back({std::string(strategy), split, true});
        }
      }
    }
  }
  return cases;
}

class OperationsBetweenProcesses : public testing::TestWithParam<ProcessCase> {
 protected:
  void SetUp() override { skip_without(GetParam().split.transport); }
};

/// expect_exact(), and expects that as many bytes are sent for it as the formula says.
template <class T>
void expect_exact_bytes(AllReduce& reduce, Transport& transport, Stream& stream,
                        Allocator& allocator, ReduceOp op, std::size_t count) {
  const std::int64_t before = transport.bytes_sent();
  expect_exact<T>(reduce, stream, allocator, transport.rank(), transport.size(), op, count);
  const auto formula = reduce.bytes_sent(static_cast<std::int64_t>(count), DTypeOf<T>::value);
  if (!formula || reduce.name() == std::string("auto")) return;  // which is for f32
  EXPECT_EQ(transport.bytes_sent() - before, *formula) << reduce.name() << " " << count;
}

TEST_P(OperationsBetweenProcesses, AreExactOnEveryRankForEveryType) {
  Processes world(GetParam().split);
  run_ranks(world.size(), [&](int rank) {
    const auto device = in_place_device();
    Stream& stream = device->communication();
    Transport& transport = world.transport(rank);
    transport.set_timeout(20);
    const auto reduce = make_all_reduce(GetParam().strategy, transport);
    Allocator& allocator = GetParam().in_reach ? transport.allocator(*device) : *device;
    Delay delay(rank);
    const auto p = static_cast<std::size_t>(world.size());
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1,
                                    std::size_t{1000}, std::size_t{100'003}}) {
      for (const ReduceOp op : kReduceOps) {
        delay.now_and_then();
        expect_exact_bytes<float>(*reduce, transport, stream, allocator, op, count);
        expect_exact_bytes<Half>(*reduce, transport, stream, allocator, op, count);
        expect_exact_bytes<BFloat16>(*reduce, transport, stream, allocator, op, count);
        expect_exact_bytes<std::int32_t>(*reduce, transport, stream, allocator, op, count);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Over, OperationsBetweenProcesses, testing::ValuesIn(process_cases()),
                         [](const auto& test) {
                           return identifier(name_of(test.param.split) + " " + test.param.strategy +
                                             (test.param.in_reach ? " in reach" : ""));
                         });

}  // namespace
}  // namespace ringlet::comm
