// Strategies by name: what a class must say of itself, those that a program adds, and the table of
// costs in docs/all-reduce.md.
#include "comm/all_reduce/strategies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/naive.h"
#include "comm/communicator.h"
#include "tests/comm/ranks.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::comm {
namespace {

/// The naive star by another name, and a cost of one's own.
class Toy : public AllReduce {
 public:
  static constexpr const char* kName = "toy";
  static constexpr Needs kNeeds = Needs::nothing;
  static PathCost path_cost(int /*ranks*/, double bytes) { return {100, bytes / 10, 0}; }

  explicit Toy(Transport& transport) : AllReduce(transport), naive_(transport) {}
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override { naive_.run(stream, data, op); }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return naive_.elements_sent(count);
  }

 private:
  NaiveAllReduce naive_;
};

struct WithoutCost {
  static constexpr const char* kName = "free";
  static constexpr Needs kNeeds = Needs::nothing;
  static double path_cost(int ranks, double bytes);  // seconds are none
};
static_assert(HasName<Toy> && HasNeeds<Toy> && HasCost<Toy>);
static_assert(HasName<WithoutCost> && HasNeeds<WithoutCost> && !HasCost<WithoutCost>);
static_assert(!HasName<AllReduce> && !HasNeeds<AllReduce> && !HasCost<AllReduce>);

Strategies with_toy() {
  Strategies strategies;
  strategies.add<Toy>();
  return strategies;
}

TEST(Strategies, OfAProgramRunByTheirNames) {
  LocalGroup group(3);
  run_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(group.transport(rank),
                              {.strategy = "toy", .timeout_seconds = 20, .strategies = with_toy()});
    std::vector<float> data(10, static_cast<float>(rank + 1));
    communicator.all_reduce(device->communication(), view_of(data), "numbers");
    EXPECT_EQ(data, std::vector<float>(10, 6.0F));
    EXPECT_STREQ(communicator.strategy(), "toy");
    const CostModel costs = group.transport(rank).typical_costs();
    EXPECT_DOUBLE_EQ(communicator.predicted_seconds(40).value(),
                     100 * costs.latency_s + 4 * costs.seconds_per_byte);
  });
}

/// Has both traits. What goes between machines is narrow for it, and is all it has.
class NarrowToy final : public Toy {
 public:
  static constexpr const char* kName = "narrow toy";
  static constexpr bool kAddsAsShardTree = true;
  static constexpr bool kNarrowsBetween = true;
  using Toy::Toy;
  const char* name() const override { return kName; }
  void run_narrow(Stream& stream, const View& /*data*/, const View& wire) override {
    run(stream, wire, ReduceOp::sum);
  }
};

TEST(Strategies, AreChosenByTheirTraits) {
  Strategies strategies = with_toy();
  strategies.add<NarrowToy>();
  for (const auto trait : {&Strategy::adds_as_shard_tree, &Strategy::narrows_between}) {
    EXPECT_TRUE(strategies.has(strategies.first_with(trait), trait));
    EXPECT_TRUE(strategies.has("narrow toy", trait));
    EXPECT_FALSE(strategies.has("toy", trait) || strategies.has("auto", trait));
  }
  EXPECT_STREQ(strategies.first_with(&Strategy::adds_as_shard_tree), "doubling");
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Communicator own(group.transport(rank), {.strategy = "narrow toy", .strategies = strategies});
    EXPECT_STREQ(own.strategy_between(), "narrow toy");
    std::vector<float> data(3, 1.0F), wire(3, 2.0F);
    own.all_reduce_narrow_between(device->communication(), view_of(data), view_of(wire), "sums");
    EXPECT_EQ(wire, std::vector<float>(3, 4.0F));
    const Communicator other(group.transport(rank), {.strategy = "toy", .strategies = strategies});
    EXPECT_STREQ(other.strategy_between(), "two-level");
    EXPECT_THROW(Toy(group.transport(rank)).run_narrow(device->communication(), {}, {}),
                 ContractError);
  });
}

TEST(Strategies, ArePickedByTheirCost) {
  LocalGroup group(4);
  const Strategies strategies = with_toy();
  const AutoAllReduce reduce(group.transport(0), strategies);
  EXPECT_STREQ(reduce.name_for(4), "one-shot");    // 100 steps are too many
  EXPECT_STREQ(reduce.name_for(64 << 20), "toy");  // and a tenth of the bytes is little
  const AutoAllReduce tuned(group.transport(0), strategies, {{4, 0, "toy"}, {4, 100, "ring"}});
  EXPECT_STREQ(tuned.name_for(4), "toy");
  EXPECT_STREQ(tuned.name_for(100), "ring");
}

TEST(Strategies, AreKnownToTheObjectThatTheyWereAddedToAlone) {
  LocalGroup group(1);
  EXPECT_EQ(with_toy().make("toy", group.transport(0))->name(), Toy::kName);
  EXPECT_EQ(with_toy().names().size(), Strategies().names().size() + 1);
  EXPECT_EQ(Strategies().find("toy"), nullptr);
  EXPECT_THROW((void)Strategies().make("toy", group.transport(0)), ContractError);
}

TEST(Strategies, HaveNamesOfTheirOwnCostsAndMakers) {
  Strategies strategies = with_toy();
  const MakeAllReduce make = strategies.find("toy")->make;
  EXPECT_THROW(strategies.add<Toy>(), ContractError);
  EXPECT_THROW(strategies.add({"auto", Needs::nothing, Toy::path_cost, make}), ContractError);
  EXPECT_THROW(strategies.add({"new", Needs::nothing, nullptr, make}), ContractError);
  EXPECT_THROW(strategies.add({"new", Needs::nothing, Toy::path_cost, {}}), ContractError);
  strategies.add({"new", Needs::nothing, Toy::path_cost, make});  // but it makes "toy"
  LocalGroup group(1);
  EXPECT_THROW((void)strategies.make("new", group.transport(0)), ContractError);
}

TEST(Strategies, ThatNeedAnEngineOrMemoryAreNotPickedWithout) {
  LocalGroup part(2, {.first_rank = 0, .world_size = 4});  // out of reach of each other
  Strategies strategies;
  for (const auto& [name, needs] :
       {std::pair{"library's", Needs::any_engine}, std::pair{"memory's", Needs::peer_access}}) {
    strategies.add({name, needs, [](int, double) { return PathCost{}; },
                    [](Transport&) -> std::unique_ptr<AllReduce> { return nullptr; }});
  }
  EXPECT_STREQ(AutoAllReduce(part.transport(0), strategies).name_for(4), "doubling");
}

/// Value of a formula as the page writes it: "2 ceil(lg p) (a + n b)", where factors side by side
/// are multiplied.
class Formula {
 public:
  Formula(std::string text, double p, double n, const CostModel& model)
      : text_(std::move(text)), p_(p), n_(n), model_(model) {}
  Formula& on(double machines, double each) {
    machines_ = machines;
    each_ = each;
    return *this;
  }
  double value() {
    const double sum = read_sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return sum;
  }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(const std::string& word) {
    next();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  double read_sum() {
    double sum = read_product();
    while (next() == '+' || next() == '-') {
      const bool adds = text_[at_++] == '+';
      const double product = read_product();
      sum += adds ? product : -product;
    }
    return sum;
  }
  double read_product() {
    double product = read_factor();
    while (next() != '\0' && next() != '+' && next() != '-' && next() != ')') {
      if (take("/")) {
        product /= read_factor();
      } else {
        product *= read_factor();
      }
    }
    return product;
  }
  double read_factor() {
    if (take("ceil")) return std::ceil(read_factor());
    if (take("lg")) return std::log2(read_factor());
    if (take("(")) {
      const double sum = read_sum();
      EXPECT_TRUE(take(")")) << text_;
      return sum;
    }
    if (take("p")) return p_;
    if (take("m")) return machines_;
    if (take("l")) return each_;
    if (take("n")) return n_;
    if (take("a")) return model_.latency_s;
    if (take("b")) return model_.seconds_per_byte;
    if (take("g")) return model_.seconds_per_reduced_byte;
    std::size_t length = 0;
    try {
      const double number = std::stod(text_.substr(at_), &length);
      at_ += length;
      return number;
    } catch (const std::exception&) {
      ADD_FAILURE() << "no formula: " << text_.substr(at_);
      at_ = text_.size();
      return NAN;
    }
  }

  std::string text_;
  double p_, n_;
  double machines_ = 1, each_ = 1;
  CostModel model_;
  std::size_t at_ = 0;
};

/// The second cell of the page's row that begins with | `name` |, or "".
std::string formula_of(const std::string& name) {
  std::istringstream page(testing::read_file(testing::checkout("docs/all-reduce.md")));
  const std::string begin = "| `" + name + "` | ";
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with(begin)) continue;
    std::string cell = line.substr(begin.size());
    cell = cell.substr(0, cell.find(" |"));
    const bool refers = cell.starts_with("as `");  // "as `ring`: ..."
    return refers ? formula_of(cell.substr(4, cell.find('`', 4) - 4)) : cell;
  }
  return "";
}

TEST(Strategies, CostWhatThePageSays) {
  const CostModel model{0.7, 1.3e-3, 0.17e-3};
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    const std::string formula = formula_of(strategy.name);
    ASSERT_NE(formula, "") << strategy.name << " has no row in docs/all-reduce.md";
    const bool for_powers = formula.find("lg p") != std::string::npos &&
                            formula.find("ceil(lg p)") == std::string::npos;
    for (const int p : {2, 3, 4, 6, 7, 8, 16}) {
      if (for_powers && (p & (p - 1)) != 0) continue;
      const double stated = Formula(formula, p, 5000, model).value();
      EXPECT_NEAR(predicted_seconds(strategy.path_cost, p, 5000, model), stated, 1e-9 * stated)
          << strategy.name << " on " << p << " ranks: " << formula;
    }
  }
}

/// The cells behind the page's row of that title.
std::vector<std::string> cells_of(const std::string& title) {
  std::istringstream page(testing::read_file(testing::checkout("docs/all-reduce.md")));
  std::vector<std::string> cells;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| " + title + " | ")) continue;
    for (std::size_t at = title.size() + 5; at < line.size();) {
      const std::size_t end = line.find(" |", at);
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
  }
  return cells;
}

/// A strategy on `machines` of `each` costs over `link` what the page says under `title`.
void expect_page(const char* name, const std::string& title, int machines, int each,
                 const CostModel& link) {
  constexpr double kBytes = 5000;
  const std::vector<std::string> cells = cells_of(title);
  ASSERT_EQ(cells.size(), 2U) << title << " has no row in docs/all-reduce.md";
  const LevelCosts costs = Strategies().find(name)->costs_of_levels(machines, each, kBytes, link);
  const double ranks = machines * each;
  const double between = Formula(cells[0], ranks, kBytes, link).on(machines, each).value();
  const double inside = Formula(cells[1], ranks, kBytes, link).on(machines, each).value();
  EXPECT_NEAR(seconds_of(costs.between, link), between, 1e-9 * between) << title;
  EXPECT_NEAR(seconds_of(costs.inside, link), inside, 1e-9) << title;
}

TEST(Strategies, CostBetweenMachinesWhatThePageSays) {
  const CostModel link{0.7, 1.3e-3, 0.17e-3};
  for (const int each : {1, 2, 4}) {
    for (const int machines : {2, 4}) {
      for (const char* name : {"naive", "tree", "doubling", "halving-doubling"}) {
        expect_page(name, name, machines, each, link);
      }
    }
    expect_page("naive", "naive", 5, each, link);
    expect_page("tree", "tree", 5, each, link);
  }
}

TEST(Strategies, CostBetweenMachinesTheWayThatTwoLevelTakes) {
  const CostModel slow_to_begin{1e3, 1e-9, 1e-9}, slow_to_go_on{1e-9, 1, 1};
  for (const int each : {1, 2, 4}) {
    expect_page("two-level", "two-level, by doubling", 2, each, slow_to_begin);
    expect_page("two-level", "two-level, by doubling", 8, each, slow_to_begin);
    expect_page("two-level", "two-level, by halving-doubling", 8, each, slow_to_go_on);
    expect_page("two-level", "two-level, by a ring", 3, each, slow_to_go_on);
    expect_page("two-level", "two-level, by a ring", 5, each, slow_to_go_on);
  }
}

}  // namespace
}  // namespace ringlet::comm
