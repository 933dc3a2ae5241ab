#include "comm/all_reduce/all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/narrow_floats.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using Values = std::vector<float>;

/// What every rank holds after one all-reduce of inputs[rank], and what each has sent.
struct Outcome {
  std::vector<Values> values;
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> formula;
};

Outcome all_reduce(const std::string& strategy, const std::vector<Values>& inputs,
                   ReduceOp op = ReduceOp::sum) {
  const int size = static_cast<int>(inputs.size());
  LocalGroup group(size);
  Outcome outcome{inputs, std::vector<std::int64_t>(inputs.size()),
                  std::vector<std::int64_t>(inputs.size())};
  run_ranks(size, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto device = in_place_device();
    group.transport(rank).set_timeout(20);
    const auto reduce = make_all_reduce(strategy, group.transport(rank));
    reduce->run(device->communication(), view_of(outcome.values[r]), op);
    outcome.sent[r] = group.transport(rank).bytes_sent();
    outcome.formula[r] = reduce->bytes_sent(static_cast<std::int64_t>(inputs[r].size())).value();
  });
  return outcome;
}

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Integers, so that sums are exact in any order; different for each rank and element.
std::vector<Values> exact_inputs(int size, std::size_t count) {
  std::vector<Values> inputs(static_cast<std::size_t>(size), Values(count));
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs[r][i] = static_cast<float>((i * 7 + r * 131) % 1009) - 500.0F;
    }
  }
  return inputs;
}

std::vector<Values> random_inputs(int size, std::size_t count) {
  std::mt19937 generator(17);
  std::normal_distribution<float> normal;
  std::vector<Values> inputs(static_cast<std::size_t>(size), Values(count));
  for (Values& values : inputs)
    std::generate(values.begin(), values.end(), [&] { return normal(generator); });
  return inputs;
}

Values exact_sum(const std::vector<Values>& inputs) {
  Values sum(inputs[0].size(), 0.0F);
  for (const Values& values : inputs) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

class AllReduceTest : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string strategy() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
  std::vector<std::size_t> lengths() const {
    const auto p = static_cast<std::size_t>(size());
    return {0, 1, p - 1, p, p + 1, 1000, 100000};
  }
};

TEST_P(AllReduceTest, SumsExactlyOnEveryRank) {
  for (const std::size_t count : lengths()) {
    const auto inputs = exact_inputs(size(), count);
    const Values expected = exact_sum(inputs);
    const Outcome outcome = all_reduce(strategy(), inputs);
    for (const Values& values : outcome.values) EXPECT_TRUE(same_bits(values, expected)) << count;
  }
}

TEST_P(AllReduceTest, LeavesTheSameBitsOnEveryRank) {
  const Outcome outcome = all_reduce(strategy(), random_inputs(size(), 1001));
  for (const Values& values : outcome.values) EXPECT_TRUE(same_bits(values, outcome.values[0]));
}

/// doubling combines on each rank, the own first.
TEST_P(AllReduceTest, LeavesTheSameZerosAndNaNsOnEveryRank) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  std::vector<Values> inputs(static_cast<std::size_t>(size()), {0.0F, -0.0F, kNaN, 1, 1});
  for (std::size_t rank = 1; rank < inputs.size(); rank += 2) {
    inputs[rank] = {-0.0F, 0.0F, -kNaN, rank == 1 ? kNaN : 1, 1};
  }
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const Outcome outcome = all_reduce(strategy(), inputs, op);
    for (const Values& values : outcome.values) EXPECT_TRUE(same_bits(values, outcome.values[0]));
  }
}

TEST_P(AllReduceTest, SendsWhatTheFormulaSays) {
  for (const std::size_t count : lengths()) {
    const Outcome outcome = all_reduce(strategy(), exact_inputs(size(), count));
    EXPECT_EQ(outcome.sent, outcome.formula) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, AllReduceTest,
                         testing::Combine(testing::ValuesIn(strategies_of_threads()),
                                          testing::Values(1, 2, 3, 4, 5, 7, 8, 16)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST(AllReduceBytes, AreThoseOfTheTextbook) {
  constexpr std::int64_t kCount = 1000, kBytes = 4 * kCount;
  for (const int p : {2, 4, 5, 8}) {
    const auto sent_by = [p](const std::string& strategy) {
      return all_reduce(strategy, exact_inputs(p, kCount)).sent;
    };
    for (const std::int64_t sent : sent_by("ring")) EXPECT_EQ(sent, 2 * kBytes * (p - 1) / p);
    const auto naive = sent_by("naive");
    EXPECT_EQ(naive[0], (p - 1) * kBytes);
    for (std::size_t r = 1; r < naive.size(); ++r) EXPECT_EQ(naive[r], kBytes);
    ASSERT_FALSE(HasFailure()) << "with " << p << " ranks";  // more would take a time-out each
  }
  for (const int p : {2, 4, 8}) {
    for (const std::string strategy : {"halving-doubling", "two-shot"}) {
      for (const std::int64_t sent : all_reduce(strategy, exact_inputs(p, kCount)).sent) {
        EXPECT_EQ(sent, 2 * kBytes * (p - 1) / p) << strategy;
      }
    }
    for (const std::int64_t sent : all_reduce("one-shot", exact_inputs(p, kCount)).sent) {
      EXPECT_EQ(sent, kBytes * (p - 1));
    }
  }
  for (const auto& [p, steps] : std::map<int, int>{{2, 1}, {4, 2}, {8, 3}}) {
    const Outcome outcome = all_reduce("doubling", exact_inputs(p, kCount));
    for (const std::int64_t sent : outcome.sent) EXPECT_EQ(sent, steps * kBytes);
  }
}

// The table of docs/all-reduce.md, also where strategies fold.
TEST(AllReduceBytes, AreThoseOfTheTableForAnyNumberOfRanks) {
  constexpr std::int64_t kCount = 2520 * 32, kBytes = 4 * kCount;  // whole grains for all p
  for (int p = 2; p <= 9; ++p) {
    SCOPED_TRACE(p);
    const auto sent_by = [p](const std::string& strategy) {
      return all_reduce(strategy, exact_inputs(p, kCount)).sent;
    };
    const auto q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
    const int lg = std::countr_zero(static_cast<unsigned>(q)), up = p > q ? lg + 1 : lg;
    const std::vector<std::int64_t> tree = sent_by("tree");
    EXPECT_EQ(*std::max_element(tree.begin(), tree.end()), up * kBytes);
    const std::vector<std::int64_t> doubling = sent_by("doubling"),
                                    halving = sent_by("halving-doubling");
    for (int rank = 0; rank < p; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::int64_t fold = rank < p - q ? kBytes : 0;
      EXPECT_EQ(doubling[r], rank >= q ? kBytes : lg * kBytes + fold) << rank;
      EXPECT_EQ(halving[r], rank >= q ? kBytes : 2 * kBytes * (q - 1) / q + fold) << rank;
    }
    for (const std::string strategy : {"ring", "two-level", "two-shot"}) {
      for (const std::int64_t sent : sent_by(strategy)) {
        EXPECT_EQ(sent, 2 * kBytes * (p - 1) / p) << strategy;
      }
    }
    ASSERT_FALSE(HasFailure());  // more would take a time-out each
  }
}

TEST(AllReduceBits, AreThoseOfEveryStrategyAtTwoRanks) {
  const auto inputs = random_inputs(2, 10001);
  const Values naive = all_reduce("naive", inputs).values[0];
  for (const std::string& strategy : strategies_of_threads()) {
    EXPECT_TRUE(same_bits(naive, all_reduce(strategy, inputs).values[0])) << strategy;
  }
}

// 60000 + 60000 is beyond f16. Messages carry the sum in it; who reduces in memory divides in f32.
TEST(AllReduceBits, OfANarrowMeanDifferWhereItsSumIsTooLarge) {
  for (const std::string& strategy : strategies_of_threads()) {
    if (strategy == "auto") continue;  // picks one of these
    std::vector<Half> data[2] = {std::vector<Half>(1, to_half(60000)),
                                 std::vector<Half>(1, to_half(60000))};
    LocalGroup group(2);
    run_ranks(2, [&](int rank) {
      const auto device = in_place_device();
      make_all_reduce(strategy, group.transport(rank))
          ->run(device->communication(), View(data[rank].data(), {1}, DType::f16), ReduceOp::mean);
    });
    const bool sums_in_f32 = strategy == "one-shot" || strategy == "two-shot";
    for (const auto& result : data) {
      if (sums_in_f32) {
        EXPECT_EQ(widen(result[0]), 60000) << strategy;
      } else {
        EXPECT_TRUE(std::isinf(widen(result[0]))) << strategy;
      }
    }
  }
}

TEST(AllReduceBits, AreThoseOfTheSumInRankOrder) {
  const auto inputs = random_inputs(5, 1001);
  for (const std::string strategy : {"naive", "one-shot", "two-shot"}) {
    EXPECT_TRUE(same_bits(all_reduce(strategy, inputs).values[0], exact_sum(inputs))) << strategy;
  }
}

/// The binary tree over [begin, end) that exact mode continues.
float tree_sum(const std::vector<Values>& inputs, std::size_t i, std::size_t begin,
               std::size_t end) {
  if (end - begin == 1) return inputs[begin][i];
  const std::size_t middle = (begin + end) / 2;
  return tree_sum(inputs, i, begin, middle) + tree_sum(inputs, i, middle, end);
}

class BinaryTreeBits : public testing::TestWithParam<std::string> {};

TEST_P(BinaryTreeBits, AreThoseOfTheStrategy) {
  for (const int p : {2, 4, 8, 16}) {
    const auto inputs = random_inputs(p, 1001);
    Values expected(inputs[0].size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = tree_sum(inputs, i, 0, inputs.size());
    }
    for (const Values& values : all_reduce(GetParam(), inputs).values) {
      EXPECT_TRUE(same_bits(values, expected)) << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, BinaryTreeBits, testing::Values("doubling", "tree"));

TEST(MakeAllReduce, NamesTheKnownStrategies) {
  LocalGroup group(1);
  for (const std::string& name : strategies_of_threads()) {
    EXPECT_EQ(make_all_reduce(name, group.transport(0))->name(), name);
  }
  try {
    (void)make_all_reduce("rign", group.transport(0));
    FAIL();
  } catch (const ContractError& error) {
    EXPECT_STREQ(
        error.what(),
        "\"rign\" is no all-reduce strategy; known are: naive, tree, ring, halving-doubling, "
        "doubling, two-level, one-shot, two-shot, nccl, gloo, mpi, library, auto");
  }
}

/// Has an engine, which notes what it is asked for.
class EngineTransport final : public Transport, public CollectiveEngine {
 public:
  explicit EngineTransport(const char* name) : Transport(World{}), name_(name) {}

  std::string asked;

  CollectiveEngine* engine() override { return this; }
  const char* engine_name() const override { return name_; }
  void all_reduce(Stream&, View data, ReduceOp op) override {
    asked += "all_reduce " + std::to_string(data.count()) + " " + name_of(op);
  }
  void reduce_and_broadcast(Stream&, View data, ReduceOp op) override {
    asked += "reduce_and_broadcast " + std::to_string(data.count()) + " " + name_of(op);
  }
  void abort(const std::string&) noexcept override {}
  std::optional<RootCause> root_cause() const override { return {}; }
  FlightRecorder& recorder() override { return recorder_; }
  std::optional<RankStatus> look_at(int) const override { return {}; }

 protected:
  void do_exchange(Stream&, int, ConstView, int, View, Combine) override {}

 private:
  const char* name_;
  FlightRecorder recorder_;
};

TEST(MakeAllReduce, LeavesToTheEngineWhatIsTheEngines) {
  const auto device = in_place_device();
  Values data(3);
  const std::string whole = "all_reduce 3 max", halves = "reduce_and_broadcast 3 max";
  for (const auto& [engine, strategy, call] :
       {std::tuple{"nccl", "nccl", whole}, std::tuple{"nccl", "library", halves},
        std::tuple{"gloo", "gloo", whole}, std::tuple{"gloo", "library", halves},
        std::tuple{"mpi", "mpi", whole}, std::tuple{"mpi", "library", halves}}) {
    EngineTransport transport(engine);
    const auto reduce = make_all_reduce(strategy, transport);
    EXPECT_STREQ(reduce->name(), strategy);
    EXPECT_EQ(reduce->bytes_sent(3), std::nullopt);
    reduce->run(device->communication(), view_of(data), ReduceOp::max);
    EXPECT_EQ(transport.asked, call) << engine << " " << strategy;
  }
}

std::string refusal_of(const std::string& strategy, Transport& transport) {
  try {
    (void)make_all_reduce(strategy, transport);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "made";
}

TEST(MakeAllReduce, SaysWhichTransportHasTheEngine) {
  LocalGroup group(1);
  EngineTransport nccl("nccl"), gloo("gloo");
  const std::string needs_nccl = "--sync nccl needs --transport nccl";
  const std::string needs_gloo =
      "--sync gloo needs --transport gloo with one replica in each process";
  EXPECT_EQ(refusal_of("nccl", group.transport(0)), needs_nccl);
  EXPECT_EQ(refusal_of("nccl", gloo), needs_nccl);
  EXPECT_EQ(refusal_of("gloo", group.transport(0)), needs_gloo);
  EXPECT_EQ(refusal_of("gloo", nccl), needs_gloo);
  EXPECT_EQ(refusal_of("library", group.transport(0)),
            "--sync library needs --transport nccl, or gloo or mpi with one replica in "
            "each process");
}

}  // namespace
}  // namespace ringlet::comm
