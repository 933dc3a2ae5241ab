// What of a text from outside a terminal, a log or a page gets to see.
#include "base/one_line.h"

#include <gtest/gtest.h>

namespace ringlet {

TEST(OneLine, KeepsWhatIsPrintable) {
  for (const char* text :
       {"", "a b", "C:\\new", "K\xC3\xB6ln", "\xE2\x82\xAC", "\xF0\x9F\x91\x95", "\xC2\xA0"}) {
    EXPECT_EQ(on_one_line(text), text);
    EXPECT_EQ(printable(text), text);
  }
}

TEST(OneLine, WritesControlCharactersInLetters) {
  EXPECT_EQ(on_one_line("a\nb\tc\rd"), R"(a\nb\tc\x0dd)");
  EXPECT_EQ(on_one_line("\x1b[31m\a\x7f"), R"(\x1b[31m\x07\x7f)");
  EXPECT_EQ(on_one_line(std::string_view("a\0b", 3)), R"(a\x00b)");
  EXPECT_EQ(on_one_line("\xC2\x9B\x33m"), R"(\u009b3m)") << "the one-letter form of ESC [";
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\nb\tc\\x0dd");
}

TEST(OneLine, WritesInLettersWhatTurnsOrHidesText) {
  EXPECT_EQ(on_one_line("a\u202Eb\u2066c\u200Fd\u2028e\uFEFF"),
            R"(a\u202eb\u2066c\u200fd\u2028e\ufeff)");
  EXPECT_EQ(on_one_line("\U000E0041"), R"(\U000e0041)");
  EXPECT_EQ(printable("\u2029"), R"(\u2029)");
}

TEST(OneLine, WritesBytesThatAreNoUtf8) {
  EXPECT_EQ(on_one_line("a\xFF"), R"(a\xff)");
  EXPECT_EQ(on_one_line("\xE2\x82"), R"(\xe2\x82)") << "breaks off";
  EXPECT_EQ(on_one_line("\x80"), R"(\x80)") << "goes on, with nothing before";
  EXPECT_EQ(on_one_line("\xC0\x8A"), R"(\xc0\x8a)") << "a line feed in two bytes";
  EXPECT_EQ(on_one_line("\xE0\x80\x9B"), R"(\xe0\x80\x9b)") << "an ESC [ in three";
  EXPECT_EQ(on_one_line("\xED\xA0\x80"), R"(\xed\xa0\x80)") << "half of a pair";
  EXPECT_EQ(on_one_line("\xF4\x90\x80\x80"), R"(\xf4\x90\x80\x80)") << "beyond the last one";
  EXPECT_EQ(on_one_line("\xF8\x88\x80\x80\x80"), R"(\xf8\x88\x80\x80\x80)");
}

TEST(Utf8, IsToldFromOtherBytes) {
  for (const char* text : {"", "hat", "Köln", "\xe2\x82\xac", "\xf0\x9f\x8e\xa9"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text : {"\xe9t\xe9", "hat\xe9", "\xc3", "\xc0\x80", "\xed\xa0\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << on_one_line(text);
  }
}

TEST(OneLine, EscapesOnce) {
  const std::string once = on_one_line("a\n\x1b\\\u202E\xFF");
  EXPECT_EQ(on_one_line(once), once);
}

TEST(OneLine, CutsOutTheMiddle) {
  const std::string text = "file: " + std::string(1 << 20, 'x') + "; remedy";
  const std::string line = on_one_line(text);
  EXPECT_LE(line.size(), kLongestLine);
  EXPECT_GT(line.size(), kLongestLine - 8);
  EXPECT_TRUE(line.starts_with("file: xxx")) << line;
  EXPECT_TRUE(line.ends_with("xxx; remedy")) << line;
  EXPECT_NE(line.find("x...x"), line.npos);
  EXPECT_EQ(on_one_line("abcdefghijk", 9), "abc...ijk");
  EXPECT_EQ(on_one_line("abcdefghi", 9), "abcdefghi");
}

TEST(OneLine, CutsNoCharacterInTwo) {
  for (std::size_t longest = 9; longest < 30; ++longest) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "\xE2\x82\xAC";
    const std::string line = on_one_line(text, longest);
    EXPECT_LE(line.size(), longest);
    EXPECT_EQ(on_one_line(line), line) << "all of it is UTF-8";
  }
}

TEST(OneLine, CutsAfterEscaping) {
  const std::string line = on_one_line(std::string(3000, '\n'));
  EXPECT_LE(line.size(), kLongestLine);
  EXPECT_TRUE(line.starts_with("\\n\\n"));
}

}  // namespace ringlet
