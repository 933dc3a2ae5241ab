// The benchmark's collectives: what each is, that its result is known to the last bit, and that
// rows of different ones never meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files/file_error.h"
#include "bench/all_reduce/collective_call.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/measure.h"
#include "tests/support/files.h"

namespace ringlet::bench {
namespace {

using ringlet::testing::message_of;
using ringlet::testing::says;
using ringlet::testing::TemporaryDirectory;
using ringlet::testing::write_file;

class EachCollective : public ::testing::TestWithParam<CollectiveId> {
 protected:
  static const Collective& collective() { return collective_of(GetParam()); }
};

std::string name_of_case(const ::testing::TestParamInfo<CollectiveId>& info) {
  std::string name = collective_of(info.param).name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Collectives, EachCollective,
                         ::testing::Values(CollectiveId::all_reduce, CollectiveId::all_gather,
                                           CollectiveId::reduce_scatter, CollectiveId::broadcast,
                                           CollectiveId::reduce, CollectiveId::all_to_all,
                                           CollectiveId::send_recv),
                         name_of_case);

AllReduceBenchOptions options_of(const Collective& collective, int ranks) {
  AllReduceBenchOptions options;
  options.collective_id = collective.id;
  options.strategies = {collective.id == CollectiveId::all_reduce ? "ring" : kOnlyStrategy};
  options.sizes = {24, 24 * 700};  // the latter with parts that are cut at whole lines
  options.root = ranks - 1;
  options.warm_up = 1;
  options.iterations = 3;
  options.execution.devices.assign(static_cast<std::size_t>(ranks), DeviceId{});
  options.execution.overlap = false;
  return options;
}

TEST_P(EachCollective, IsRightOfEveryTypeInPlaceAndNot) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    for (const int ranks : {2, 3}) {
      for (const bool in_place : {true, false}) {
        AllReduceBenchOptions options = options_of(collective(), ranks);
        options.type = type;
        options.in_place = in_place;
        const auto rows = measure_all_reduce(options, [](const Measurement&) {});
        ASSERT_EQ(rows.size(), 2u);
        for (const Measurement& row : rows) {
          EXPECT_TRUE(row.right()) << work_text(row) << " of " << ranks << ", " << row.bytes;
          EXPECT_EQ(row.collective, collective().name);
          EXPECT_EQ(row.in_place, in_place);
          EXPECT_EQ(row.root, collective().has_root ? ranks - 1 : kNoRoot);
          EXPECT_EQ(row.op, collective().reduces ? "sum" : "none");
          EXPECT_EQ(row.count * size_of(type) * collective().parts(ranks), row.bytes);
          EXPECT_EQ(row.hashes.size(), collective().same_everywhere ? ranks : 0u);
        }
      }
    }
  }
}

/// The inputs of all ranks, by the patterns, and what a rank should get of them: worked out here
/// from what the collectives are, on i32.
class Reference {
 public:
  static constexpr int kRanks = 3, kRoot = 1;
  static constexpr std::int64_t kCount = 3 * 1408, kPart = kCount / kRanks, kIteration = 5;
  using Elements = std::vector<std::int32_t>;

  explicit Reference(const Collective& collective) : id_(collective.id) {
    const std::int64_t count = id_ == CollectiveId::all_gather ? kPart : kCount;
    for (int rank = 0; rank < kRanks; ++rank) {
      patterns_.push_back(pattern_for(collective, DType::i32, ReduceOp::sum, rank, kRanks));
      inputs_.emplace_back(count);
      patterns_.back().write_input(kIteration, inputs_.back().data(), count * 4);
    }
  }

  Elements result_of(int rank) const {
    Elements result(kCount, -1);  // which no input has
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto from = static_cast<int>(i / kPart);
      switch (id_) {
        case CollectiveId::broadcast:
          put(result, i, kRoot, i);
          break;
        case CollectiveId::send_recv:
          put(result, i, (rank + kRanks - 1) % kRanks, i);
          break;
        case CollectiveId::all_gather:
          put(result, i, from, i % kPart);
          break;
        case CollectiveId::all_to_all:
          put(result, i, from, rank * kPart + i % kPart);
          break;
        default:
          result[index(i)] = 0;
          for (const Elements& input : inputs_) result[index(i)] += input[index(i)];
      }
    }
    return result;
  }
  const TestPattern& pattern(int rank) const { return patterns_[index(rank)]; }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  void put(Elements& result, std::int64_t at, int from, std::int64_t element) const {
    result[index(at)] = inputs_[index(from)][index(element)];
  }

  CollectiveId id_;
  std::vector<TestPattern> patterns_;
  std::vector<Elements> inputs_;
};

TEST_P(EachCollective, KnowsEachWrongElementOfItsResult) {
  const Reference reference(collective());
  const CollectiveCall call{collective(), ReduceOp::sum, Reference::kRoot};
  for (int rank = 0; rank < Reference::kRanks; ++rank) {
    Reference::Elements result = reference.result_of(rank);
    const auto wrong = [&](std::int64_t iteration) {
      return count_wrong(call, reference.pattern(rank), rank, Reference::kRanks, iteration,
                         ConstView(result.data(), {Reference::kCount}, DType::i32));
    };
    EXPECT_EQ(wrong(Reference::kIteration), 0) << rank;
    const OwnedElements owned = owned_after(call, rank, Reference::kRanks, Reference::kCount);
    const std::int64_t length = owned.end - owned.begin;
    const bool has_none = collective().id == CollectiveId::reduce && rank != Reference::kRoot;
    EXPECT_EQ(length, has_none                                          ? 0
                      : collective().id == CollectiveId::reduce_scatter ? Reference::kPart
                                                                        : Reference::kCount);
    if (length == 0) continue;
    EXPECT_GT(wrong(Reference::kIteration + 1), length * 9 / 10) << "a former result";
    ++result[static_cast<std::size_t>(owned.begin)];
    --result[static_cast<std::size_t>(owned.end - 1)];
    EXPECT_EQ(wrong(Reference::kIteration), 2);
  }
}

TEST_P(EachCollective, TakesNothingOfAnotherRanksPlace) {
  if (collective().reduces || collective().id == CollectiveId::broadcast) return;
  const Reference reference(collective());
  const CollectiveCall call{collective(), ReduceOp::sum, Reference::kRoot};
  Reference::Elements others = reference.result_of(1);
  if (collective().id == CollectiveId::all_gather) {  // parts in another order
    std::rotate(others.begin(), others.begin() + Reference::kPart, others.end());
  }
  EXPECT_GT(count_wrong(call, reference.pattern(0), 0, Reference::kRanks, Reference::kIteration,
                        ConstView(others.data(), {Reference::kCount}, DType::i32)),
            Reference::kCount * 9 / 10);
}

TEST(Collectives, HaveNcclTestsFactors) {
  const auto factor = [](CollectiveId id) { return collective_of(id).bus_factor(4); };
  EXPECT_DOUBLE_EQ(factor(CollectiveId::all_reduce), 1.5);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::all_gather), 0.75);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::reduce_scatter), 0.75);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::all_to_all), 0.75);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::broadcast), 1);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::reduce), 1);
  EXPECT_DOUBLE_EQ(factor(CollectiveId::send_recv), 1);
}

TEST(Collectives, AreFoundByTheirNames) {
  std::set<std::string> names;
  for (const Collective& collective : collectives()) {
    EXPECT_EQ(find_collective(collective.name), &collective_of(collective.id));
    names.insert(collective.name);
  }
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(find_collective("all_reduce"), nullptr);
}

TEST(Collectives, CostTheirLongestPath) {
  const comm::PathCost gather = path_cost_of(CollectiveId::all_gather, 4, 800);
  EXPECT_DOUBLE_EQ(gather.steps, 3);
  EXPECT_DOUBLE_EQ(gather.bytes, 600);
  EXPECT_DOUBLE_EQ(gather.reduced_bytes, 0);
  EXPECT_DOUBLE_EQ(path_cost_of(CollectiveId::reduce_scatter, 4, 800).reduced_bytes, 600);
  const comm::PathCost broadcast = path_cost_of(CollectiveId::broadcast, 5, 800);
  EXPECT_DOUBLE_EQ(broadcast.steps, 3);  // of a tree over five ranks
  EXPECT_DOUBLE_EQ(broadcast.bytes, 2400);
  EXPECT_DOUBLE_EQ(path_cost_of(CollectiveId::reduce, 5, 800).reduced_bytes, 2400);
  EXPECT_DOUBLE_EQ(path_cost_of(CollectiveId::send_recv, 5, 800).steps, 1);
}

Measurement row_of_collective(const char* collective, std::int64_t bytes, double median_us) {
  Measurement row;
  row.collective = collective;
  row.strategy = kOnlyStrategy;
  row.ranks = 4;
  row.bytes = bytes;
  row.count = bytes / 16;
  row.op = "none";
  row.iterations = 10;
  row.median_us = row.min_us = row.p99_us = median_us;
  return row;
}

TEST(Collectives, AreComparedEachByItself) {
  // Of a step of 2 us and of 1 GB/s: all-gather has three steps of a quarter each.
  const auto at = [](std::int64_t bytes) { return 3 * 2 + 0.75e-3 * static_cast<double>(bytes); };
  const auto comparisons = compare({row_of_collective("all-gather", 4096, at(4096)),
                                    row_of_collective("all-to-all", 4096, 9),
                                    row_of_collective("all-gather", 1 << 20, at(1 << 20))});
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_EQ(comparisons[0].collective, "all-gather");
  EXPECT_EQ(work_text(comparisons[0]), "all-gather, f32 in place");
  const Series& series = comparisons[0].series.front();
  ASSERT_TRUE(series.fit);
  EXPECT_NEAR(series.fit->model.latency_s, 2e-6, 1e-8);
  EXPECT_NEAR(series.fit->model.seconds_per_byte, 1e-9, 1e-11);
  EXPECT_EQ(models_json(comparisons).at(0).at("collective"), "all-gather");
}

TEST(Collectives, OfAnotherRootAreOtherWork) {
  Measurement a = row_of_collective("broadcast", 4096, 3), b = a;
  a.root = 0;
  b.root = 1;
  EXPECT_EQ(compare({a, b}).size(), 2u);
  EXPECT_EQ(work_text(b), "broadcast from rank 1, f32 in place");
  b.collective = "reduce";
  b.op = "sum";
  b.in_place = false;
  EXPECT_EQ(work_text(b), "reduce to rank 1, f32 sum out of place");
}

TEST(Collectives, AreReadAndRefusedByTheirRows) {
  const TemporaryDirectory folder;
  const auto read = [&](const nlohmann::json& row) {
    write_file(folder / "x.json", row.dump());
    return read_measurements(folder / "x.json").front();
  };
  Measurement row = row_of_collective("broadcast", 4096, 3);
  row.root = 2;
  const nlohmann::json written = to_json(row);
  EXPECT_EQ(read(written).collective, "broadcast");
  EXPECT_EQ(read(written).root, 2);
  EXPECT_DOUBLE_EQ(read(written).busbw_gbs(), read(written).algbw_gbs());
  nlohmann::json old = to_json(row_of_collective("all-reduce", 4096, 3));
  old.erase("collective");
  EXPECT_EQ(read(old).collective, "all-reduce");

  const auto refused = [&](const char* field, const nlohmann::json& value) {
    nlohmann::json odd = written;
    odd[field] = value;
    return message_of<FileError>([&] { read(odd); });
  };
  EXPECT_TRUE(says(refused("collective", "<b>scan</b>"), {"row 1: 'collective' is '<b>scan"}));
  EXPECT_TRUE(says(refused("collective", 7), {"row 1: 'collective'"}));
  EXPECT_TRUE(says(refused("root", 4), {"row 1: 'root' is 4, of broadcast with 4 ranks"}));
  EXPECT_TRUE(says(refused("root", -1), {"row 1: 'root' is -1"}));
  EXPECT_TRUE(says(refused("root", 1e99), {"row 1: 'root'"}));
  EXPECT_TRUE(says(refused("collective", "all-gather"), {"row 1: 'root' is 2, of all-gather"}));
}

}  // namespace
}  // namespace ringlet::bench
