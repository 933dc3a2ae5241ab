// Collectives allocate nothing in the steady state.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tests/comm/ranks.h"
#include "tests/support/counting_new.h"

namespace ringlet::comm {
namespace {

class AllocationTest : public testing::TestWithParam<std::string> {};

TEST_P(AllocationTest, HappensInTheFirstTwoStepsOnly) {
  LocalGroup group(3);
  run_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Stream& stream = device->communication();
    Communicator communicator(group.transport(rank), {.strategy = GetParam()});
    std::vector<float> data(10000), losses(3);
    const auto step = [&] {
      communicator.set_activity("a step");
      communicator.all_reduce(stream, view_of(data),
                              "bucket 0 (with a name too long for a string)");
      communicator.all_reduce(stream, view_of(data).slice(0, 10), "bucket 1");
      communicator.broadcast(stream, 1, view_of(data), "weights");
      communicator.all_gather(stream, view_of(data).slice(0, 1), view_of(losses), "loss");
      communicator.barrier(stream, "end");
      communicator.require_identical(stream, view_of(data), "parameters");
    };
    for (int i = 0; i < 2; ++i) step();  // one-shot has two windows in turn
    const std::int64_t on_host = test::operator_new_calls_of_this_thread();
    const std::int64_t on_device = device->allocations();
    for (int i = 0; i < 20; ++i) step();
    EXPECT_EQ(test::operator_new_calls_of_this_thread(), on_host);
    EXPECT_EQ(device->allocations(), on_device);
    EXPECT_GT(on_host, 0);  // the counter counts
  });
}

INSTANTIATE_TEST_SUITE_P(Strategies, AllocationTest, testing::ValuesIn(strategies_of_threads()),
                         [](const auto& test) { return identifier(test.param); });

}  // namespace
}  // namespace ringlet::comm
