// `.rec` and `.idx`: parts and the magic word, labels, keys, what is kept beside, and what is
// refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/data_error.h"
#include "data/images/picture_reader.h"
#include "data/open_dataset.h"
#include "data/record_dataset.h"
#include "data/record_list.h"
#include "tests/support/pictures.h"
#include "tests/support/records.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::as_png;
using testing::gradient_image;
using testing::kMagicWord;
using testing::message_of;
using testing::record_head;
using testing::record_part;
using testing::Records;
using testing::says;

std::string png(int number, int side = 16) {
  Image image = gradient_image(side, side, 3);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(value + 31 * number);
  return as_png(image);
}

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class Record : public ::testing::Test {
 protected:
  fs::path rec() const { return folder_ / "train.rec"; }
  RecordFile file_of(const std::string& bytes) const {
    testing::write_file(rec(), bytes);
    return RecordFile(rec());
  }
  std::string error_of(const std::string& bytes, std::uint64_t offset = 0) const {
    return message_of<DataError>([&] { (void)file_of(bytes).head(offset); });
  }
  /// InsightFace's form: record 0 with (a, b), pictures, and identities without a picture.
  Records faces() const {
    Records records;
    records.add(0, record_part(0, record_head(0, 0, {6, 9})));
    const float labels[] = {0, 0, 1, 2, 2};
    for (int i = 0; i < 5; ++i) records.picture(1 + i, labels[i], png(i));
    for (int k = 0; k < 3; ++k) {
      records.add(6 + k, record_part(0, record_head(0, 6 + k, {1.0F + k, 2.0F + k})));
    }
    return records;
  }
  RecordList list() const { return list_records(RecordFile(rec())); }
  std::string list_error() const {
    return message_of<DataError>([&] { (void)list(); });
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Record, IsReadWhole) {
  const RecordFile file = file_of("1234" + record_part(0, record_head(7, 5) + "abcde") +
                                  record_part(0, record_head(0, 6, {3, 4, 5}) + png(0)));
  const RecordHead head = file.head(4);
  EXPECT_EQ(head.flag, 0U);
  EXPECT_EQ(head.labels[0], 7);
  EXPECT_EQ(head.picture_bytes, 5U);
  EXPECT_FALSE(head.is_picture);
  EXPECT_EQ(head.end, 4U + 8 + 24 + 8);
  std::vector<std::uint8_t> bytes;
  file.picture(4, bytes);
  EXPECT_EQ(text_of(bytes), "abcde");
  const RecordHead next = file.head(head.end);
  EXPECT_EQ(next.flag, 3U);
  EXPECT_EQ(next.labels, (std::array<float, 2>{3, 4}));
  EXPECT_TRUE(next.is_picture);
  file.picture(head.end, bytes);
  EXPECT_EQ(text_of(bytes), png(0));
}

TEST_F(Record, JoinsPartsByTheMagicWord) {
  const std::string payload = record_head(1, 2) + "12345678" + kMagicWord + kMagicWord + "xyz";
  const std::string record =
      record_part(1, record_head(1, 2) + "12345678") + record_part(2, "") + record_part(3, "xyz");
  const RecordFile file = file_of(record);
  std::vector<std::uint8_t> bytes;
  file.picture(0, bytes);
  EXPECT_EQ(text_of(bytes), payload.substr(24));
  EXPECT_EQ(file.head(0).end, record.size());
  EXPECT_EQ(file.head(0).picture_bytes, 8U + 4 + 4 + 3);
  EXPECT_EQ(as_record(testing::bytes_of(payload)), record);
}

TEST_F(Record, MayHaveTheMagicWordForALabel) {
  float label = 0;
  std::memcpy(&label, kMagicWord.data(), 4);
  const std::string record =
      record_part(1, std::string(4, '\0')) + record_part(3, std::string(16, '\0') + "ab");
  const RecordHead head = file_of(record).head(0);
  EXPECT_EQ(head.labels[0], label);
  EXPECT_EQ(head.picture_bytes, 2U);
  EXPECT_EQ(as_record(testing::bytes_of(record_head(label, 0) + "ab")), record);
}

TEST_F(Record, IsWrittenAsItIsRead) {
  for (int length = 0; length < 24; ++length) {
    std::string picture;
    for (int i = 0; i < length; ++i) picture += kMagicWord[static_cast<std::size_t>(i * i) % 4];
    for (const std::string& middle : {std::string(), kMagicWord, kMagicWord + kMagicWord}) {
      const std::string whole = std::string(picture).append(middle).append(picture);
      const float label[] = {3};
      const std::string payload = record_payload(label, 9, testing::bytes_of(whole));
      EXPECT_EQ(payload, record_head(3, 9) + whole);
      const RecordFile file = file_of(as_record(testing::bytes_of(payload)));
      if (whole.empty()) continue;
      std::vector<std::uint8_t> bytes;
      file.picture(0, bytes);
      EXPECT_EQ(text_of(bytes), whole);
      EXPECT_EQ(file.head(0).end, file.file().bytes());
    }
  }
  const float two[] = {1, 2};
  EXPECT_EQ(record_payload(two, 0, {}), record_head(0, 0, {1, 2}));
}

TEST_F(Record, IsRefusedWhereItIsDamaged) {
  const std::string whole = record_part(0, record_head(1, 2) + "abcd");
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{8}, whole.size() - 1}) {
    EXPECT_TRUE(says(error_of(whole.substr(0, bytes)),
                     {"train.rec: the record at byte 0 is cut short", "fetch the file again"}));
  }
  EXPECT_TRUE(says(error_of(whole, 4), {"byte 4 does not begin with RecordIO's magic word"}));
  EXPECT_TRUE(says(error_of(record_part(1, "abcd")), {"lacks its last part"}));
  EXPECT_TRUE(says(error_of(record_part(1, "abcd") + whole), {"lacks its last part"}));
  EXPECT_TRUE(says(error_of(record_part(1, "abcd") + "noise..."), {"lacks its last part"}));
  EXPECT_TRUE(says(error_of(record_part(2, "abcd")), {"lacks its first part"}));
  EXPECT_TRUE(says(error_of(record_part(3, "abcd")), {"lacks its first part"}));
  EXPECT_TRUE(says(error_of(record_part(5, "abcd")), {"a part of an unknown kind"}));
  EXPECT_TRUE(says(error_of(record_part(0, "abcd")), {"shorter than a picture's head"}));
  std::string labels = record_head(1, 2);
  labels[0] = 9;
  EXPECT_TRUE(says(error_of(record_part(0, labels)), {"no room for its 9 labels"}));
}

TEST_F(Record, IndexIsOfKeysInTheirOrder) {
  std::istringstream lines("3\t8\r\n1\t0\n\n16777217\t12\n18446744073709551615\t4\n");
  const auto entries = read_record_index(lines, "t.idx", "t.rec", 16);
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].key, 1U);
  EXPECT_EQ(entries[1].offset, 8U);
  EXPECT_EQ(entries[2].key, 16777217U);  // an f32 would make 16777216 of it
  EXPECT_EQ(entries[3].key, ~std::uint64_t{0});
}

TEST_F(Record, IndexIsRefusedWhereItIsAnothers) {
  const auto error = [](const std::string& text) {
    return message_of<DataError>([&] {
      std::istringstream lines(text);
      read_record_index(lines, "t.idx", "t.rec", 16);
    });
  };
  EXPECT_TRUE(says(error("1\t0\n2\t8\n1\t12\n"), {"t.idx: the key 1 is there twice"}));
  EXPECT_TRUE(says(error("1\t0\n2\t16\n"), {"line 2 has byte 16", "t.rec", "another file's"}));
  EXPECT_TRUE(says(error("1\t2\n"), {"line 1 has byte 2"}));
  for (const char* line : {"1 0", "1\t", "\t1", "a\tb", "-1\t0", "1\t0\t", "1\t0 ",
                           "18446744073709551616\t0", "1\t18446744073709551616"}) {
    EXPECT_TRUE(says(error(std::string("0\t0\n") + line + "\n"), {"line 2 is no KEY TAB OFFSET"}))
        << line;
  }
}

TEST_F(Record, ListHasWhatBytesFollow) {
  faces().write(rec());
  const RecordList indexed = list();
  EXPECT_EQ(indexed.keys, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(indexed.labels, (std::vector<std::int32_t>{0, 0, 1, 2, 2}));
  EXPECT_EQ(indexed.identities, 3);
  EXPECT_EQ(indexed.told, 6);
  EXPECT_TRUE(notes_on("r", indexed).empty());
  fs::remove(folder_ / "train.idx");
  EXPECT_EQ(list(), indexed);  // a scan finds the same
}

TEST_F(Record, ListTakesKeysThatAnF32DoesNotKnow) {
  Records records;
  records.add(0, record_part(0, record_head(0, 0, {16777216, 16777216})));
  records.picture(16777216, 0, png(0));
  records.picture(16777217, 1, png(1));
  records.picture(16777218, 1, png(2));
  records.write(rec());
  EXPECT_EQ(list().keys, (std::vector<std::uint64_t>{16777216, 16777217, 16777218}));
  const auto notes = notes_on("r", list());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(says(notes[0], {"r: its first record tells of 16777215 pictures, and there are 3"}));
}

TEST_F(Record, ListMayBeOfAFileWithoutAHeaderAndWithGaps) {
  Records records;
  records.add(5, record_part(0, record_head(9, 5, {4, 1, 2}) + png(0)));  // three labels
  records.picture(6, 1, png(1));
  records.write(rec(), false);
  const RecordList found = list();
  EXPECT_EQ(found.labels, (std::vector<std::int32_t>{4, 1}));
  EXPECT_EQ(found.keys, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(notes_on("r", found), std::vector<std::string>{"r: no picture has the labels 0, 2, 3"});
}

TEST_F(Record, ListRefusesLabelsThatAreNone) {
  for (const float label : {std::nanf(""), -1.0F, 0.5F, 16777218.0F, INFINITY}) {
    Records records;
    records.picture(1, 0, png(0));
    records.picture(2, label, png(1));
    for (const bool indexed : {true, false}) {
      records.write(rec(), indexed);
      EXPECT_TRUE(says(list_error(), {"train.rec: the record at byte", "has the label",
                                      "whole numbers from 0 to 16777216"}));
    }
  }
  testing::write_file(rec(), "");
  fs::remove(folder_ / "train.idx");
  EXPECT_TRUE(says(list_error(), {"train.rec: no record of it holds a picture"}));
}

TEST_F(Record, ListIsKeptBesideWhileTheFilesAreTheSame) {
  faces().write(rec());
  const fs::path kept = folder_ / "train.labels";
  const RecordList first = list();
  ASSERT_TRUE(fs::exists(kept));
  // That the kept list is what counts shows where the file's labels changed and its time did not.
  const auto time = fs::last_write_time(rec());
  std::string bytes = testing::read_file(rec());
  const auto at = bytes.find(testing::f32(1) + testing::little_endian(3, 8));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 4, testing::f32(7));
  testing::write_file(rec(), bytes);
  fs::last_write_time(rec(), time);
  EXPECT_EQ(list(), first);
  fs::last_write_time(rec(), time + std::chrono::seconds(1));
  EXPECT_EQ(list().identities, 8);
  // A kept list that is damaged is made anew, and a file of that name that is another's stays.
  std::string damaged = testing::read_file(kept);
  damaged[damaged.size() / 2] ^= 1;
  testing::write_file(kept, damaged);
  EXPECT_EQ(list().identities, 8);
  EXPECT_NE(testing::read_file(kept), damaged);
  testing::write_file(kept, "notes of mine");
  EXPECT_EQ(list().identities, 8);
  EXPECT_EQ(testing::read_file(kept), "notes of mine");
}

TEST_F(Record, DatasetHasTheFilesPixels) {
  faces().write(rec());
  const Splits splits = open_dataset(rec().string());
  EXPECT_EQ(splits.train->size(), 5);
  EXPECT_EQ(splits.train->height(), 16);  // the first picture's own size
  EXPECT_EQ(splits.train->channels(), 3);
  EXPECT_EQ(splits.train->target_names(), (std::vector<std::string>{"0", "1", "2"}));
  for (int i = 0; i < 5; ++i) {
    const Image image = decode_image(testing::bytes_of(png(i)), "png");
    const std::vector<std::uint8_t> planes = splits.train->image(i);
    for (std::size_t p = 0; p < planes.size(); ++p) {
      ASSERT_EQ(planes[p], image.pixels[p % 256 * 3 + p / 256]) << i << " " << p;
    }
  }
  EXPECT_TRUE(splits.train->photographs());
  EXPECT_TRUE(is_picture_folder(rec().string()));
  EXPECT_EQ(open_dataset(rec().string(), {.pictures = {.image_size = 20}}).train->height(), 20);
}

TEST_F(Record, DatasetIsReadByManyThreadsAtOnce) {
  Records records;
  for (int i = 0; i < 64; ++i) records.picture(i, static_cast<float>(i % 4), png(i));
  records.write(rec());
  const auto set = open_dataset(rec().string()).train;
  std::vector<std::vector<std::uint8_t>> expected;
  for (int i = 0; i < 64; ++i) expected.push_back(set->image(i));
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int k = 0; k < 256; ++k) {
          const int i = (k * (2 * t + 1) + 17 * t) % 64;
          if (set->image(i) != expected[static_cast<std::size_t>(i)]) {
            ++wrong[static_cast<std::size_t>(t)];
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(Record, DatasetTestsOnWhatLiesBesideElseOnSomeOfItsOwn) {
  faces().write(rec());
  Splits splits = open_dataset(rec().string());
  EXPECT_EQ(splits.test->size(), 5);
  ASSERT_EQ(splits.notes.size(), 1U);
  EXPECT_TRUE(says(splits.notes[0], {"train.rec: there is no val.rec", "5 of the training"}));
  Records others;
  others.picture(1, 2, png(9));
  others.write(folder_ / "val.rec");
  splits = open_dataset(rec().string());
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.test->target_names(), splits.train->target_names());
  EXPECT_EQ(splits.test->targets()[0], 2);
  others.picture(2, 3, png(9));
  others.write(folder_ / "val.rec");
  EXPECT_TRUE(says(message_of<DataError>([&] { open_dataset(rec().string()); }),
                   {"val.rec: it has the label 3", "train.rec", "end at 2"}));
}

TEST_F(Record, DatasetsNamesSortAsTheirNumbersDo) {
  const std::vector<std::string> names = identity_names(101);
  EXPECT_EQ(names[0], "000");
  EXPECT_EQ(names[99], "099");
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST_F(Record, DatasetTellsOfPicturesThatAreNone) {
  Records records;
  records.picture(1, 0, png(0));
  records.picture(2, 1, "RIFFxxxxWAVE");
  records.picture(3, 1, png(1));
  records.picture(4, 1, png(1).substr(0, 60));  // begins as one
  records.write(rec());
  for (int kept = 0; kept < 2; ++kept) {
    const Splits splits = open_dataset(rec().string());
    EXPECT_TRUE(says(message_of<DataError>([&] { splits.train->look_at_samples(); }),
                     {"holds no picture by its first bytes", "1 of 4", "--skip-broken"}));
    EXPECT_TRUE(says(message_of<DataError>([&] { splits.train->image(3); }),
                     {"train.rec: the picture at byte"}));
  }
  const Splits left = open_dataset(rec().string(), {.skip_broken = true});
  EXPECT_EQ(left.train->size(), 2);
  left.train->look_at_samples();
  EXPECT_TRUE(says(left.notes[0], {"left out", "train.rec"}));
  // Who only tests does so on some of these.
  const OpenOptions to_test{.skip_broken = true, .only_test = true};
  EXPECT_EQ(open_dataset(rec().string(), to_test).test->contents(), left.test->contents());
  Records others;
  others.picture(1, 1, png(2));
  others.write(folder_ / "val.rec");
  const Splits beside = open_dataset(rec().string(), to_test);
  EXPECT_EQ(beside.test->size(), 1);
  EXPECT_EQ(beside.train->size(), 4) << "nobody reads these";
}

TEST_F(Record, DatasetIsKnownByItsContent) {
  faces().write(rec());
  const std::uint64_t hash = open_dataset(rec().string()).train->hash();
  fs::create_directory(folder_ / "moved");
  faces().write(folder_ / "moved" / "train.rec", false);
  EXPECT_EQ(open_dataset((folder_ / "moved" / "train.rec").string()).train->hash(), hash);
  Records other = faces();
  other.picture(9, 1, png(8));
  other.write(rec());
  EXPECT_NE(open_dataset(rec().string()).train->hash(), hash);
}

}  // namespace
}  // namespace ringlet::data
