// Rows that are cut over ranks: who has which, where they lie, and how they start.
#include "nn/placement.h"

#include <gtest/gtest.h>

#include "nn/axis.h"
#include "nn/ops/elementwise.h"
#include "tests/nn/support.h"

namespace ringlet::nn {
namespace {

using Floats = std::vector<float>;

TEST(Placement, CutsRowsIntoWholePartsTheLargerOnesFirst) {
  const AxisPosition three{.rank = 0, .ranks = 3};
  EXPECT_EQ(three.held(10, 0), (Rows{0, 4}));
  EXPECT_EQ(three.held(10, 1), (Rows{4, 7}));
  EXPECT_EQ(three.held(10, 2), (Rows{7, 10}));
  EXPECT_EQ(three.held(2, 2), (Rows{2, 2}));  // fewer rows than ranks
  for (const int ranks : {1, 2, 4, 8}) {
    const AxisPosition exact{.rank = 0, .ranks = ranks, .shards = 8};
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(exact.held(11, rank).begin, next);
      EXPECT_EQ(exact.held(11, rank).begin, exact.part(11, rank * 8 / ranks).begin);
      next = exact.held(11, rank).end;
    }
    EXPECT_EQ(next, 11);
  }
}

/// A matrix whose rows are cut, and a vector that all have.
struct Cut {
  Cut() {
    table.placement = Placement::rows;
    registry.add(table, "table");
    registry.add(scale, "scale");
  }
  Parameter table{{5, 3}, Initializer::normal(1)};
  Parameter scale{{3}, Initializer::normal(1)};
  Registry registry;
};

Plan plan_by_hand(const Registry& registry) {
  Plan plan;
  const Parameter& table = *registry.parameters[0];
  plan.parameters = {
      {"scale", {3}, 1, 1, 0, 3},
      {"table", table.held(), 0, 1, 16, 16 + table.held().count(), Placement::rows, false, 5}};
  plan.sharded = plan.rows_apart = 16;
  plan.elements = 32;
  return plan;
}

TEST(Placement, RowsLieBehindWhatAllRanksHaveAndStartAsThoseOfTheWhole) {
  const auto device = open_device({});
  for (const int rank : {0, 1, 2}) {
    Cut cut;
    cut.registry.place({.rank = rank, .ranks = 3});
    const Rows rows = cut.table.rows;
    Parameters parameters(*device, cut.registry, plan_by_hand(cut.registry));
    parameters.initialize(7);
    EXPECT_EQ(cut.table.value.shape(), (Shape{rows.size(), 3}));
    EXPECT_EQ(cut.table.value.f32(), parameters.values().f32() + 16);
    Floats expected(15);
    initialize(cut.table.initializer, 7, "table", expected);
    EXPECT_EQ(test::read(cut.table.value),
              Floats(expected.begin() + 3 * rows.begin, expected.begin() + 3 * rows.end));
  }
}

TEST(Placement, ExactModeKeepsTheGradientsOfShardsApart) {
  const auto device = open_device({});
  Cut cut;
  cut.registry.place({.rank = 1, .ranks = 2, .shards = 4});
  Parameters parameters(*device, cut.registry, plan_by_hand(cut.registry));
  for (const std::int64_t pass : {0, 1}) {
    parameters.use_pass(pass);
    ASSERT_EQ(cut.table.gradients_by_rank.size(), 2u);
    for (const int rank : {0, 1}) {
      EXPECT_EQ(cut.table.gradients_by_rank[static_cast<std::size_t>(rank)].f32(),
                parameters.row_gradients(2 * rank + static_cast<int>(pass)).f32());
    }
  }
  EXPECT_EQ(parameters.row_gradients(0).f32(), parameters.gradients().f32() + 16);
}

TEST(Placement, RefusesWhatCannotBePlaced) {
  Cut cut;
  cut.scale.placement = Placement::stage;
  EXPECT_NO_THROW(cut.registry.place({}));
  cut.scale.stage = 1;
  EXPECT_THROW(cut.registry.place({}), ContractError);
  Parameter filter({2, 1, 3, 3}, Initializer::zeros());
  filter.is_filter = true;
  filter.placement = Placement::rows;
  Registry registry;
  registry.add(filter, "filter");
  EXPECT_THROW(registry.place({}), ContractError);
}

/// Whoever computes with rows as if they were all of them hears of it in the dry run.
TEST(Placement, AnOperationThatSeesOneRankRefusesRows) {
  auto graph = std::make_unique<Graph>();
  Parameter& table = graph->add("table", {5, 3});
  table.placement = Placement::rows;
  graph->set([&table](Tape& tape, const Variable&) {
    return add(tape.parameter(table), tape.parameter(table));
  });
  Registry registry = register_model(*graph);
  registry.place({.rank = 0, .ranks = 2});
  EXPECT_THROW(plan_training(*graph, registry, {{1}, Layout::nchw}, output_is_loss), ContractError);
}

}  // namespace
}  // namespace ringlet::nn
