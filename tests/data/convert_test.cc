// From .bin and .rec to folders and back, byte for byte, and what is refused before anything is
// written.
#include "data/convert.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/data_error.h"
#include "data/pairs.h"
#include "data/record_list.h"
#include "tests/support/pickles.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::as_jpeg;
using testing::as_png;
using testing::gradient_image;
using testing::message_of;
using testing::Records;
using testing::says;

std::string picture(int number) {
  const Image image = gradient_image(4 + number, 5, 3);
  return number % 2 == 0 ? as_png(image) : as_jpeg(image);
}

/// All files below `folder`, by their paths.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder)] = testing::read_file(entry.path());
    }
  }
  return files;
}

class Convert : public ::testing::Test {
 protected:
  fs::path put(const std::string& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    testing::write_file(folder_ / name, bytes);
    return folder_ / name;
  }
  fs::path out() const { return folder_ / "out"; }
  /// Refused, and nothing is left of it.
  template <class Action>
  std::string refusal(const Action& action) const {
    const std::string message = message_of<DataError>(action);
    EXPECT_FALSE(fs::exists(out()));
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_EQ(entry.path().filename().string().find(".tmp."), std::string::npos);
    }
    return message;
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Convert, BinBecomesItsPicturesAndPairs) {
  std::vector<std::string> pictures;
  std::vector<bool> same;
  for (int i = 0; i < 12; ++i) pictures.push_back(picture(i));
  for (int i = 0; i < 6; ++i) same.push_back(i % 3 == 0);
  const fs::path bin = put("set.bin", testing::pickled_pairs(pictures, same));
  const Converted result = convert_bin(bin, out());
  EXPECT_EQ(result.pictures, 12);
  EXPECT_EQ(result.pairs, 6);
  EXPECT_EQ(result.same, 2);
  const auto files = files_of(out());
  ASSERT_EQ(files.size(), 13U);
  EXPECT_EQ(files.at("00.png"), pictures[0]);
  EXPECT_EQ(files.at("11.jpg"), pictures[11]);
  const auto pairs = open_pairs(out() / "pairs.txt");
  EXPECT_EQ(pairs->same(), same);
  EXPECT_EQ(pairs->hash() == 0, false);
  std::vector<std::uint8_t> kept;
  for (int i = 0; i < 12; ++i) {
    const auto bytes = pairs->picture(i, kept);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), pictures[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(foreign_entry(out()), "");
}

TEST_F(Convert, RecordsBecomeAFolderAndThatBecomesRecords) {
  Records records;
  const int labels[] = {0, 0, 10, 2, 2, 10};
  for (int i = 0; i < 6; ++i) {
    std::string bytes = picture(i);
    // The magic word stands in the third, where a writer has to cut.
    if (i == 2) bytes += std::string((8 - (24 + bytes.size()) % 4) % 4, 'x') + testing::kMagicWord;
    if (i == 2) {
      const std::string payload = testing::record_head(10, 95) + bytes;
      records.add(95, as_record(testing::bytes_of(payload)));
      EXPECT_NE(records.bytes().find(testing::record_part(3, "")), std::string::npos);
    } else {
      records.picture(static_cast<std::uint64_t>(i < 3 ? 93 + i : 95 + i),
                      static_cast<float>(labels[i]), bytes);
    }
  }
  const Converted result = convert_records(records.write(folder_ / "a.rec"), out());
  EXPECT_EQ(result.pictures, 6);
  EXPECT_EQ(result.identities, 3);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_TRUE(says(result.notes[0], {"no picture has the labels 01, 03 to 09"}));
  const auto files = files_of(out());
  ASSERT_EQ(files.size(), 6U);
  EXPECT_EQ(files.at("00/093.png"), picture(0));
  EXPECT_EQ(files.at("10/100.jpg"), picture(5));
  EXPECT_EQ(foreign_entry(out()), "");

  const Converted back = convert_folder(out(), folder_ / "b.rec");
  EXPECT_EQ(back.pictures, 6);
  EXPECT_EQ(back.identities, 3);
  const RecordFile file(folder_ / "b.rec");
  const RecordList list = list_records(file);
  EXPECT_EQ(list.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(list.told, 7);
  EXPECT_EQ(list.keys, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
  std::size_t i = 0;
  std::vector<std::uint8_t> bytes;
  for (const auto& [name, content] : files) {
    file.picture(list.offsets[i++], bytes);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), content) << name;
  }
  // Identities stand behind the pictures, each with the keys of its pictures.
  std::istringstream lines(testing::read_file(folder_ / "b.idx"));
  const auto index = read_record_index(lines, "b.idx", "b.rec", file.file().bytes());
  ASSERT_EQ(index.size(), 10U);
  EXPECT_EQ(file.head(index[0].offset).labels, (std::array<float, 2>{7, 10}));
  EXPECT_EQ(file.head(index[8].offset).labels, (std::array<float, 2>{3, 5}));
  EXPECT_EQ(file.head(index[9].offset).labels, (std::array<float, 2>{5, 7}));
  fs::remove(folder_ / "b.idx");
  EXPECT_EQ(list_records(file).offsets, list.offsets);
}

TEST_F(Convert, RefusesBeforeItWrites) {
  const fs::path bin = put("a.bin", testing::pickled_pairs({"GIF", picture(0)}, {true}));
  EXPECT_TRUE(says(refusal([&] { convert_bin(bin, out()); }), {"a.bin: picture 0 is none"}));
  put("a.png", picture(0));
  put("b.png", "GIF");
  const fs::path text = put("p.txt", "a.png\tb.png\t1\n");
  EXPECT_TRUE(says(refusal([&] { convert_bin(text, out()); }), {"b.png: holds no picture"}));
  Records records;
  records.picture(1, 0, picture(0));
  records.picture(2, 0, "GIF");
  records.write(folder_ / "a.rec");
  EXPECT_TRUE(says(refusal([&] { convert_records(folder_ / "a.rec", out()); }),
                   {"a.rec: the record at byte", "no picture by its first bytes"}));
  put("faces/a/1.png", picture(0));
  put("faces/b/2.jpg", "GIF");
  const auto convert = [&] { convert_folder(folder_ / "faces", folder_ / "b.rec"); };
  EXPECT_TRUE(says(refusal(convert), {"faces/b/2.jpg: holds no picture by its first bytes"}));
  fs::create_directory(folder_ / "faces/train");
  EXPECT_TRUE(says(refusal(convert), {"faces: there is train"}));
  fs::remove_all(folder_ / "faces");
  put("faces/a.png", picture(0));
  EXPECT_TRUE(says(refusal(convert), {"faces: there is no picture in a folder of an identity"}));
  EXPECT_FALSE(fs::exists(folder_ / "b.rec"));
  EXPECT_FALSE(fs::exists(folder_ / "b.idx"));
}

TEST_F(Convert, LeavesNothingWhereItIsStopped) {
  std::vector<std::string> pictures;
  for (int i = 0; i < 8; ++i) pictures.push_back(picture(i));
  const fs::path bin = put("a.bin", testing::pickled_pairs(pictures, {true, true, true, true}));
  int asked = 0;
  std::int64_t told = 0;
  const ConvertOptions options{.stop_requested = [&] { return ++asked == 12; },
                               .progress =
                                   [&](std::int64_t done, std::int64_t total) {
                                     told = done;
                                     EXPECT_EQ(total, 8);
                                   }};
  EXPECT_THROW(convert_bin(bin, out(), options), Stopped);
  EXPECT_EQ(told, 2);
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Convert, NamesWhatOthersHaveWritten) {
  put("out/0001/02.png", "x");
  put("out/17.jpg", "x");
  put("out/pairs.txt", "x");
  EXPECT_EQ(foreign_entry(out()), "");
  put("out/0001/mine.png", "x");
  EXPECT_EQ(foreign_entry(out()), "0001/mine.png");
  fs::remove_all(out());
  for (const char* name : {"out/.git", "out/a.png", "out/run/1.png", "out/0001/2/3.png", "out/7"}) {
    put(name, "x");
    EXPECT_NE(foreign_entry(out()), "") << name;
    fs::remove_all(out());
  }
}

}  // namespace
}  // namespace ringlet::data
