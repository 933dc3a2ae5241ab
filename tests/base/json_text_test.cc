// JSON of files with tables: as many lines as entries, and the same values when read back. What is
// no JSON.
#include "base/files/json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ringlet {

TEST(JsonText, HasARowALine) {
  const nlohmann::json document = {
      {"machine", {{"cores", 2}, {"near", {1.5, 2}}}},
      {"none", nlohmann::json::array()},
      {"rows", {{{"bytes", 4}, {"name", "a\nb"}}, {{"bytes", 8}, {"name", "c"}}}}};
  const std::string text = row_a_line(document);
  EXPECT_EQ(parse_json(text), document);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  EXPECT_NE(text.find("\n  {\"bytes\":8,\"name\":\"c\"}]}\n"), std::string::npos) << text;
  EXPECT_EQ(row_a_line(nlohmann::json::object()), "{}\n");
}

TEST(JsonText, KnowsItsDepth) {
  EXPECT_EQ(json_depth(""), 0);
  EXPECT_EQ(json_depth(R"({"a":[1,{"b":2}]})"), 3);
  EXPECT_EQ(json_depth(R"({"[[[\"[":1})"), 1);
}

TEST(JsonText, IsParsedOrDiscarded) {
  const nlohmann::json list = {1, "a"};
  EXPECT_EQ(parse_json(R"([1, "a"])"), list);
  EXPECT_EQ(json_or_discarded(R"([1, "a"])"), list);
  for (const char* broken : {"", "{", "[1] 2"}) {
    EXPECT_THROW(parse_json(broken), nlohmann::json::exception) << broken;
    EXPECT_TRUE(json_or_discarded(broken).is_discarded()) << broken;
  }
}

/// What can be parsed at that depth would take all of the stack when it is copied.
TEST(JsonText, NestedTooDeeplyIsNotRead) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_FALSE(json_or_discarded(nested(100)).is_discarded());
  EXPECT_FALSE(where_json_breaks(nested(100)));
  for (const std::size_t depth : {101, 100000}) {
    EXPECT_TRUE(json_or_discarded(nested(depth)).is_discarded()) << depth;
    EXPECT_THROW(parse_json(nested(depth)), nlohmann::json::exception) << depth;
    EXPECT_EQ(where_json_breaks(nested(depth)).value().why, "nested deeper than 100") << depth;
  }
}

TEST(JsonText, BreaksAtAValue) {
  using Way = std::vector<std::string>;
  const auto way = [](const char* text) { return where_json_breaks(text).value().way; };
  EXPECT_EQ(way(R"({"rows": [{"a": 1}, {"a": [2, 3], "b": NaN}]})"), (Way{"rows", "1", "b"}));
  EXPECT_EQ(way(R"({"rows": [{"a": 1e999)"), (Way{"rows", "0", "a"}));
  EXPECT_EQ(way(R"({"rows": [[1], [2], )"), (Way{"rows", "2"}));
  EXPECT_EQ(way(R"({"a": {"b": 1}, "c")"), (Way{"c"}));
  EXPECT_EQ(way("hello"), Way{});
  EXPECT_NE(where_json_breaks("{\"a\":\n tru}")->why.find("line 2, column"), std::string::npos);
  EXPECT_FALSE(where_json_breaks(R"({"a": [1, {"b": null}]})"));
}

}  // namespace ringlet
