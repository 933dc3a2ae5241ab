// Pairs: as text, as LFW has them, and as a pickle, which can do nothing but hold pairs.
#include "data/pairs.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/data_error.h"
#include "data/pickled_pairs.h"
#include "tests/support/pickles.h"
#include "tests/support/pictures.h"
#include "tests/support/testdata.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::little_endian;
using testing::message_of;
using testing::pickled_bytes;
using testing::pickled_list;
using testing::pickled_pairs;
using testing::says;

const std::string kPgm = "P5\n1 1\n255\nx";

std::string pickle_error(const std::string& file) {
  return message_of<DataError>([&] { read_pickled_pairs(bytes_of(file), "f.bin"); });
}

std::string text_error(const std::string& text) {
  return message_of<DataError>([&] {
    std::istringstream lines(text);
    read_pairs(lines, "p.txt");
  });
}

std::vector<NamedPair> pairs_in(const std::string& text) {
  std::istringstream lines(text);
  return read_pairs(lines, "p.txt");
}

/// A name and its arguments, called.
std::string called(const std::string& module, const std::string& name,
                   const std::string& arguments) {
  return "\x80\x02" + ("c" + module + "\n" + name + "\n(" + arguments) + "tR.";
}

TEST(Pickle, OfEveryProtocolAndFormIsTheSame) {
  std::vector<std::string> files{"python2"};
  for (const char* protocol : {"2", "3", "4", "5"}) {
    files.push_back(std::string("bytes-") + protocol);
    for (const char* numpy : {"numpy1", "numpy2"}) {
      files.push_back(std::string(numpy) + "-arrays-" + protocol);
      files.push_back(std::string(numpy) + "-bools-" + protocol);
    }
  }
  for (const std::string& file : files) {
    const std::string bytes = testing::read_file(testing::testdata("pairs/" + file + ".bin"));
    const PickledPairs pairs = read_pickled_pairs(bytes_of(bytes), file);
    EXPECT_EQ(pairs.same, (std::vector<bool>{true, false})) << file;
    ASSERT_EQ(pairs.pictures.size(), 4U) << file;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string picture(pairs.pictures[i].begin(), pairs.pictures[i].end());
      const auto first = static_cast<unsigned char>(200 + 10 * i);
      EXPECT_EQ(picture, std::string("P5\n2 1\n255\n") + static_cast<char>(first) +
                             static_cast<char>(first + 1))
          << file << " " << i;
    }
  }
}

TEST(Pickle, CallsNothing) {
  EXPECT_TRUE(says(pickle_error(called("os", "system", "X" + little_endian(4, 4) + "true")),
                   {"f.bin: the pickle names os.system", "not called"}));
  EXPECT_TRUE(says(pickle_error(called("posix", "system", "")), {"posix.system"}));
  EXPECT_TRUE(says(pickle_error(called("builtins", "eval", "")), {"builtins.eval"}));
  EXPECT_TRUE(says(pickle_error(called("numpy.core.multiarray", "frombuffer", "")),
                   {"numpy.core.multiarray.frombuffer"}));
  EXPECT_TRUE(says(pickle_error(called("numpy\x1b[2J.core", "dtype", "")), {"numpy\\x1b[2J.core"}));
  // Named by texts on the stack, in protocol 4.
  EXPECT_TRUE(says(pickle_error("\x80\x04\x8c\x02os\x8c\x06system\x93."), {"names os.system"}));
  // A name of the list is called by none but its own arguments.
  EXPECT_TRUE(says(pickle_error(called("numpy", "ndarray", "K\x05")), {"damaged"}));
  for (const std::string opcode : {"i", "o", "\x81", "\x92", "}", "\x8f", "\x82", "P", "Q"}) {
    EXPECT_TRUE(says(pickle_error("\x80\x04" + opcode + "os\nsystem\n."),
                     {"the pickle has the opcode", "it is not run"}));
  }
}

TEST(Pickle, IsRefusedWhereItWantsTooMuch) {
  const std::size_t many = 1'000'000;
  const std::string head = "\x80\x03";
  EXPECT_TRUE(says(pickle_error(head + std::string(many, ']') + std::string(many, 'a') + "."),
                   {"nests deeper than 32 levels"}));
  EXPECT_TRUE(says(pickle_error(head + std::string(many, '(') + std::string(many, 'l') + "."),
                   {"nests deeper than 32 levels"}));
  for (const char open : {']', '('}) {  // and no level is ever closed
    EXPECT_TRUE(
        says(pickle_error(head + std::string(many, open) + "."), {"nests deeper than 32 levels"}));
  }
  EXPECT_TRUE(says(pickle_error(head + ")" + std::string(many, '\x85') + "."),
                   {"nests deeper than 32 levels"}));
  // One list listed in the next, each taken from the memo.
  std::string listed = head + "](";
  for (int level = 0; level < 40; ++level) {
    const auto key = static_cast<char>(level);
    listed += std::string("]q") + key + (level == 0 ? "" : std::string("h") + char(key - 1) + "a");
  }
  EXPECT_TRUE(says(pickle_error(listed), {"nests deeper than 32 levels"}));
  EXPECT_TRUE(says(pickle_error(head + "B\xff\xff\xff\xff" + "abc"),
                   {"claims 4294967295 bytes at byte 7, and 3 are left"}));
  EXPECT_TRUE(says(pickle_error("\x80\x05\x96" + std::string(8, '\x7f') + "abc"), {"claims 9"}));
  EXPECT_TRUE(says(pickle_error("\x80\x04\x95" + std::string(8, '\x7f') + "abc"), {"claims 9"}));
  EXPECT_TRUE(says(pickle_error(head + std::string().append(9'000'000, 'K')),
                   {"more than 4194304 values"}));
  EXPECT_TRUE(says(pickle_error(head + "r\xff\xff\xff\xff."), {"damaged"}));
  EXPECT_TRUE(says(pickle_error(head + "h\x07."), {"damaged"}));
}

TEST(Pickle, IsRefusedWhereItIsNoPairs) {
  const std::string four = pickled_pairs({kPgm, kPgm, kPgm, kPgm}, {true, false});
  EXPECT_EQ(read_pickled_pairs(bytes_of(four), "f").pictures.size(), 4U);
  EXPECT_TRUE(says(pickle_error("(lp0\n."), {"is no pickle of protocol 2 to 5"}));
  EXPECT_TRUE(says(pickle_error("\x80\x06."), {"pickle of protocol 6, and 2 to 5 are known"}));
  EXPECT_TRUE(says(pickle_error("\x80\x01."), {"pickle of protocol 1"}));
  EXPECT_TRUE(says(pickle_error(pickled_pairs({}, {})), {"there is no pair"}));
  EXPECT_TRUE(says(pickle_error(pickled_pairs({kPgm, kPgm, kPgm}, {true, false})),
                   {"3 pictures for 2 answers"}));
  EXPECT_TRUE(says(pickle_error(pickled_pairs({kPgm, "GIF89a"}, {true})),
                   {"picture 1 is none by its first bytes"}));
  const std::string pictures = pickled_list({pickled_bytes(kPgm), pickled_bytes(kPgm)});
  EXPECT_TRUE(says(pickle_error("\x80\x03" + pictures + pictures + pictures + "\x87."),
                   {"has 3 parts, where two stand"}));
  EXPECT_TRUE(says(pickle_error("\x80\x03" + pictures + "."), {"picture"}));
  EXPECT_TRUE(says(pickle_error("\x80\x03" + pictures + pickled_list({"K\x01"}) + "\x86."),
                   {"the answer of pair 0 is neither True nor False"}));
  EXPECT_TRUE(says(pickle_error("\x80\x03" + pictures + "N\x86."), {"no list of answers"}));
  EXPECT_TRUE(says(pickle_error("\x80\x03N" + pictures + "\x86."), {"no list of"}));
  EXPECT_TRUE(says(pickle_error(four + "x"), {"1 bytes behind the pickle's end"}));
  for (std::size_t bytes = 2; bytes < four.size(); ++bytes) {
    EXPECT_FALSE(pickle_error(four.substr(0, bytes)).empty()) << bytes;
  }
}

TEST(Pickle, HoldsArraysOfBytesAlone) {
  const std::string file = testing::read_file(testing::testdata("pairs/numpy1-arrays-4.bin"));
  std::string other = file;
  const auto type = other.find("u1");
  ASSERT_NE(type, std::string::npos);
  EXPECT_TRUE(says(pickle_error(other.replace(type, 2, "f8")), {"array of f8", "u1 and b1"}));
}

TEST(Pairs, AreReadAsText) {
  const std::vector<NamedPair> pairs = pairs_in("a b.jpg\tc.jpg\t1\r\n\nd/e.png\tf.png\t0");
  EXPECT_EQ(pairs,
            (std::vector<NamedPair>{{"a b.jpg", "c.jpg", true}, {"d/e.png", "f.png", false}}));
  EXPECT_EQ(pairs_in(pairs_text(pairs)), pairs);
}

TEST(Pairs, AreReadAsLfwHasThem) {
  const std::string lines =
      "Abel_Pacheco\t1\t4\nAkhmed\t1\t2\nAbdel\t1\tDean\t12\nAdam\t3\tPatty\t12345\n";
  const std::vector<NamedPair> expected{
      {"Abel_Pacheco/Abel_Pacheco_0001.jpg", "Abel_Pacheco/Abel_Pacheco_0004.jpg", true},
      {"Akhmed/Akhmed_0001.jpg", "Akhmed/Akhmed_0002.jpg", true},
      {"Abdel/Abdel_0001.jpg", "Dean/Dean_0012.jpg", false},
      {"Adam/Adam_0003.jpg", "Patty/Patty_12345.jpg", false}};
  EXPECT_EQ(pairs_in("1\t2\n" + lines), expected);
  EXPECT_EQ(pairs_in("2\n" + lines), expected);
  EXPECT_TRUE(says(text_error("10\t300\n" + lines),
                   {"p.txt: its first line tells of 6000 pairs, and there are 4"}));
  EXPECT_TRUE(says(text_error("2\nAbel\t0\t1\n"), {"line 2 is neither NAME i j"}));
}

TEST(Pairs, AreRefusedWhereALineIsNone) {
  EXPECT_TRUE(says(text_error(""), {"p.txt: there is no pair"}));
  for (const char* line : {"a\tb", "a\tb\t2", "a\tb\t1\t", "a b 1", "\tb\t1", "a\t\t1"}) {
    EXPECT_TRUE(says(text_error(std::string("a\tb\t1\n") + line), {"p.txt: line 2 is no PATH"}))
        << line;
  }
}

TEST(Pairs, HaveTheirPicturesBytes) {
  const testing::TemporaryDirectory folder;
  fs::create_directory(folder / "b");
  testing::write_file(folder / "a.pgm", kPgm);
  testing::write_file(folder / "b/c.pgm", kPgm + "c");
  testing::write_file(folder / "of.txt", "a.pgm\tb/c.pgm\t1\nb/c.pgm\ta.pgm\t0\n");
  testing::write_file(folder / "of.bin",
                      pickled_pairs({kPgm, kPgm + "c", kPgm + "c", kPgm}, {true, false}));
  std::vector<std::uint64_t> hashes;
  for (const char* file : {"of.txt", "of.bin"}) {
    const auto pairs = open_pairs(folder / file);
    EXPECT_EQ(pairs->name(), "of");
    EXPECT_EQ(pairs->same(), (std::vector<bool>{true, false}));
    std::vector<std::uint8_t> kept;
    for (const std::int64_t i : {0, 1, 2, 3}) {
      const auto bytes = pairs->picture(i, kept);
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), i == 0 || i == 3 ? kPgm : kPgm + "c");
    }
    hashes.push_back(pairs->hash());
  }
  testing::write_file(folder / "of.txt", "a.pgm\tb/c.pgm\t1\nb/c.pgm\ta.pgm\t1\n");
  EXPECT_NE(open_pairs(folder / "of.txt")->hash(), hashes[0]);
  testing::write_file(folder / "of.txt", "a.pgm\tb/c.pgm\t1\nb/c.pgm\tgone.pgm\t0\n");
  EXPECT_TRUE(says(message_of<DataError>([&] { open_pairs(folder / "of.txt"); }),
                   {"of.txt: pair 2 names the picture", "gone.pgm, which is not there"}));
  EXPECT_TRUE(says(message_of<DataError>([&] { open_pairs(folder / "no.bin"); }),
                   {"no.bin: there is no such file"}));
}

}  // namespace
}  // namespace ringlet::data
