#include "data/fingerprint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "base/data_error.h"
#include "tests/support/files.h"

namespace ringlet::data {
namespace {

using testing::message_of;
using testing::says;

class Fingerprint : public ::testing::Test {
 protected:
  std::uint64_t of(const std::string& bytes) const {
    testing::write_file(file_, bytes);
    return fingerprint_of(file_);
  }

  testing::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_ / "picture";
};

TEST_F(Fingerprint, IsOfEachByteOfASmallFile) {
  std::string bytes(kReadWhole, 'x');
  const std::uint64_t whole = of(bytes);
  for (const std::size_t at : {std::size_t{0}, std::size_t{100'001}, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = 'y';
    EXPECT_NE(of(other), whole) << at;
  }
  EXPECT_NE(of(bytes.substr(1)), whole);
  EXPECT_NE(of(""), of(std::string(1, '\0')));
}

TEST_F(Fingerprint, IsOfTheBeginningTheMiddleAndTheEndOfALargeOne) {
  std::string bytes(std::size_t{1} << 20, 'x');
  const std::uint64_t whole = of(bytes);
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = 'y';
    EXPECT_NE(of(other), whole) << at;
  }
  EXPECT_NE(of(bytes + "x"), whole);
}

// 1 MiB and a byte, of which each 32,768th byte is changed in turn.
TEST_F(Fingerprint, IsOfEachByteOfADataSetsFileOrOfManyParts) {
  std::string bytes((std::size_t{1} << 20) + 1, 'x');
  const FingerprintRange all{.whole = bytes.size(), .parts = 2},
      parts{.whole = bytes.size() - 1, .parts = 11};
  of(bytes);
  const std::uint64_t of_all = fingerprint_of(file_, all), of_parts = fingerprint_of(file_, parts);
  int seen = 0, changes = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 32'768, ++changes) {
    std::string other = bytes;
    other[at] = 'y';
    of(other);
    EXPECT_NE(fingerprint_of(file_, all), of_all) << at;
    if (fingerprint_of(file_, parts) != of_parts) ++seen;
  }
  EXPECT_EQ(changes, 33);
  EXPECT_GE(seen, 20);  // 11 parts of 64 KiB are 0.69 of it
  EXPECT_LT(seen, 33);
}

TEST_F(Fingerprint, IsTheSameForACopyWithOtherTimes) {
  const std::uint64_t here = of("abc");
  const std::filesystem::path copy = folder_ / "copy";
  std::filesystem::copy(file_, copy);
  std::filesystem::last_write_time(
      copy, std::filesystem::last_write_time(file_) - std::chrono::hours(100));
  EXPECT_EQ(fingerprint_of(copy), here);
}

TEST_F(Fingerprint, NeverChangesForStatesHoldIt) {
  EXPECT_EQ(of("abc"), 17940244164850901663U);
  EXPECT_EQ(of(std::string(kReadWhole + 1, 'z')), 9930455966583253722U);
  EXPECT_EQ(of(""), 12522756256763493868U);
}

TEST_F(Fingerprint, NamesAFileThatCannotBeRead) {
  const auto error = [&] { return message_of<DataError>([&] { fingerprint_of(file_); }); };
  EXPECT_TRUE(says(error(), {"picture: there is no such file"}));
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_TRUE(says(error(), {"picture: is not a regular file"}));
}

}  // namespace
}  // namespace ringlet::data
