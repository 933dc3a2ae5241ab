// ringlet devices, on whatever machine the tests run.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "tests/cli/program.h"

namespace ringlet::testing {
namespace {

TEST(DevicesCommand, ListsTheProcessorAndEitherGpusOrAReason) {
  const Outcome outcome = ringlet({"devices"});
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(outcome.out.starts_with("cpu:0 ")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, {"\ncuda"}));
  EXPECT_TRUE(outcome.out.ends_with('\n'));
}

TEST(DevicesCommand, AreReadByPrograms) {
  const Outcome outcome = ringlet({"devices", "--json"});
  EXPECT_TRUE(succeeds(outcome));
  const auto json = parse_json(outcome.out);
  EXPECT_EQ(json["cpu"]["device"], "cpu:0");
  EXPECT_NE(json["cuda"]["devices"].empty(), json["cuda"]["why_none"].is_null());
}

TEST(DevicesCommand, TakesNothingElse) {
  EXPECT_TRUE(fails_with(2, ringlet({"devices", "cuda:0"}), {"cuda:0"}));
}

}  // namespace
}  // namespace ringlet::testing
