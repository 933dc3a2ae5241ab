// Two-level all-reduce, and what `auto` makes of machines: threads stand for the ranks of several.
#include "comm/all_reduce/two_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/all_reduce/auto.h"
#include "tests/comm/exact_operations.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

/// A network between the machines that counts, in front of one rank of a LocalGroup.
class CountingTransport final : public Transport {
 public:
  CountingTransport(Transport& inner, std::vector<std::atomic<std::int64_t>>& sent_by_machine)
      : Transport(inner.world()), inner_(inner), sent_by_machine_(sent_by_machine) {}

  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return inner_.root_cause(); }
  FlightRecorder& recorder() override { return inner_.recorder(); }
  std::optional<RankStatus> look_at(int rank) const override { return inner_.look_at(rank); }
  int machine_of(int rank) const override { return inner_.machine_of(rank); }
  CostModel typical_costs() const override { return {100e-6, 1 / 115e6, 1 / 20e9}; }
  CostModel typical_costs_inside() const override { return {2e-6, 1 / 5e9, 1 / 16e9}; }

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override {
    if (to != kNobody && machine_of(to) != world().machine) {
      sent_by_machine_[static_cast<std::size_t>(world().machine)] += out.bytes();
    }
    inner_.exchange(stream, to, out, from, in, combine);
  }

 private:
  Transport& inner_;
  std::vector<std::atomic<std::int64_t>>& sent_by_machine_;
};

/// Which machine each rank is on.
using Placement = std::vector<int>;

std::string name_of(const Placement& placement) {
  std::string name = "ranks_on_";
  for (const int machine : placement) name += std::to_string(machine);
  return name;
}

int machines_of(const Placement& placement) {
  return *std::max_element(placement.begin(), placement.end()) + 1;
}

/// Runs body(transport, stream, device) on each rank. Gives what each machine sent to others.
template <class Body>
std::vector<std::int64_t> run_on(const Placement& placement, Body body) {
  const int size = static_cast<int>(placement.size());
  LocalGroup group(size);
  group.set_machines(placement);
  std::vector<std::atomic<std::int64_t>> sent(static_cast<std::size_t>(machines_of(placement)));
  run_ranks(size, [&](int rank) {
    const auto device = in_place_device();
    CountingTransport transport(group.transport(rank), sent);
    group.transport(rank).set_timeout(20);
    body(transport, device->communication(), *device);
  });
  return {sent.begin(), sent.end()};
}

class TwoLevel : public ::testing::TestWithParam<Placement> {};

INSTANTIATE_TEST_SUITE_P(
    Over, TwoLevel,
    ::testing::Values(Placement{0}, Placement{0, 0, 0}, Placement{0, 1}, Placement{0, 0, 1, 1},
                      Placement{0, 1, 0, 1}, Placement{0, 0, 0, 1}, Placement{0, 1, 1, 1, 1},
                      Placement{0, 0, 1, 1, 2, 2}, Placement{0, 0, 0, 1, 1, 2, 2, 2},
                      Placement{0, 1, 2, 3, 0, 1, 2, 3},
                      Placement{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}),
    [](const auto& test) { return name_of(test.param); });

TEST_P(TwoLevel, IsExactOnEveryRankForEveryTypeAndOperation) {
  run_on(GetParam(), [](Transport& transport, Stream& stream, Device& device) {
    TwoLevelAllReduce reduce(transport);
    Delay delay(transport.rank());
    const auto p = static_cast<std::size_t>(transport.size());
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, p - 1, p + 1, std::size_t{1000}, std::size_t{100'003}}) {
      for (const ReduceOp op : kReduceOps) {
        delay.now_and_then();
        const int rank = transport.rank(), size = transport.size();
        const std::int64_t before = transport.bytes_sent();
        expect_exact<float>(reduce, stream, device, rank, size, op, count);
        EXPECT_EQ(transport.bytes_sent() - before,
                  reduce.bytes_sent(static_cast<std::int64_t>(count)));
        expect_exact<Half>(reduce, stream, device, rank, size, op, count);
        expect_exact<BFloat16>(reduce, stream, device, rank, size, op, count);
        expect_exact<std::int32_t>(reduce, stream, device, rank, size, op, count);
      }
    }
  });
}

TEST_P(TwoLevel, LeavesTheSameBitsOnEveryRank) {
  const std::size_t size = GetParam().size();
  std::vector<std::vector<float>> values(size, std::vector<float>(10'007));
  run_on(GetParam(), [&](Transport& transport, Stream& stream, Device&) {
    auto& mine = values[static_cast<std::size_t>(transport.rank())];
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = 1.0F / static_cast<float>(i + 3 * static_cast<std::size_t>(transport.rank()) + 1);
    }
    TwoLevelAllReduce(transport).run(stream, view_of(mine), ReduceOp::mean);
  });
  for (const auto& of_rank : values) EXPECT_EQ(of_rank, values.front());
}

/// n (m-1)/m to and fro over each link, however many ranks a machine has.
TEST_P(TwoLevel, SendsOverALinkWhatOneRankAMachineWould) {
  constexpr std::int64_t kCount = 64 * 3 * 32 * 16;
  const std::int64_t machines = machines_of(GetParam());
  const auto sent = run_on(GetParam(), [&](Transport& transport, Stream& stream, Device&) {
    std::vector<float> data(kCount, 1.0F);
    TwoLevelAllReduce(transport).run(stream, view_of(data), ReduceOp::sum);
  });
  for (const std::int64_t bytes : sent) {
    EXPECT_EQ(bytes, 4 * 2 * kCount * (machines - 1) / machines);
  }
}

std::string picked(const Placement& placement, std::int64_t bytes) {
  std::string name;
  run_on(placement, [&](Transport& transport, Stream&, Device&) {
    if (transport.rank() == 0) name = AutoAllReduce(transport, {}).name_for(bytes);
  });
  return name;
}

TEST(AutoOnMachines, TakesTwoLevelsWhereMachinesHaveSeveralRanks) {
  for (const Placement& placement : {Placement{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1}}) {
    for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{64} << 20}) {
      EXPECT_EQ(picked(placement, bytes), "two-level") << name_of(placement) << " " << bytes;
    }
  }
  for (const Placement& placement : {Placement{0, 1}, {0, 1, 2}, {0, 0, 0, 0}}) {
    for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{64} << 20}) {
      EXPECT_NE(picked(placement, bytes), "two-level") << name_of(placement) << " " << bytes;
    }
  }
}

}  // namespace
}  // namespace ringlet::comm
