// Bytes that come over the socket: messages, plans, and what is neither.
#include "comm/processes/message.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/processes/plan_check.h"

namespace ringlet::comm {
namespace {

TEST(Message, ComesBackAsItWasSent) {
  const Message sent{.kind = Message::Kind::set, .number = -7, .key = "k", .value = {"\0v", 2}};
  const auto got = parse_message(bytes_of(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, sent.kind);
  EXPECT_EQ(got->number, sent.number);
  EXPECT_EQ(got->key, sent.key);
  EXPECT_EQ(got->value, sent.value);
}

TEST(Message, OfAnAbortCutsNoLetterInTwo) {
  for (const int process : {0, 12}) {
    for (std::size_t begin = 0; begin < 3; ++begin) {
      std::string text(begin, 'x');
      while (text.size() < Message::kLongest + 3) text += "\u2026";  // three bytes
      const Message message = abort_message({.rank = 7, .message = text}, process);
      const std::size_t bytes = message.key.size() + message.value.size();
      EXPECT_LE(bytes, Message::kLongest);
      EXPECT_GT(bytes, Message::kLongest - 3);
      ASSERT_TRUE(message.value.ends_with(" ..."));
      EXPECT_EQ((message.value.size() - 4 - begin) % 3, 0U);
      EXPECT_EQ(message.number, 7);
    }
  }
  EXPECT_EQ(abort_message({.rank = 7, .message = "short"}, 3).value, "short");
}

TEST(Message, IsNothingWhereItsHeaderOrKeyIsCut) {
  const std::string whole = bytes_of({.kind = Message::Kind::hello, .key = "key", .value = "v"});
  for (std::size_t size = 0; size < whole.size() - 1; ++size) {
    EXPECT_FALSE(parse_message(whole.substr(0, size))) << size;
  }
  std::string of_no_kind = whole;
  of_no_kind[0] = static_cast<char>(Message::Kind::status) + 1;
  EXPECT_FALSE(parse_message(of_no_kind));
  std::string with_endless_key = whole;
  with_endless_key[8] = with_endless_key[11] = '\x7f';
  EXPECT_FALSE(parse_message(with_endless_key));
}

TEST(Plan, EndsWhereItsTextBreaksOff) {
  const Plan plan{{"name", "value"}, {"", ""}, {"seed", "1"}};
  const std::string whole = to_text(plan);
  EXPECT_EQ(plan_of(whole), plan);
  EXPECT_EQ(plan_of("name"), (Plan{{"name", ""}}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_LE(plan_of(whole.substr(0, size)).size(), plan.size()) << size;
  }
}

TEST(Plan, DiffersAlsoWhereOnlyTheEndIsCut) {
  const std::string whole = to_text({{"seed", "1"}});
  EXPECT_NE(find_difference({whole, whole.substr(0, whole.size() - 1)}), "");
}

}  // namespace
}  // namespace ringlet::comm
