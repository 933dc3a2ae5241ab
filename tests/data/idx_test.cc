#include "data/idx.h"

#include <gtest/gtest.h>

#include "base/data_error.h"
#include "tests/data/idx_files.h"

namespace ringlet::data {
namespace {

using testing::gzip;
using testing::idx;
using testing::idx_header;
using testing::message_of;
using testing::says;
using testing::write_file;

class Idx : public ::testing::Test {
 protected:
  /// Reads `bytes` as a file.
  IdxArray read(const std::string& bytes, int dimensions = 3, const RawBytesObserver& seen = {}) {
    write_file(path_, bytes);
    return read_idx(path_, dimensions, seen);
  }
  std::string error(const std::string& bytes, int dimensions = 3) {
    return message_of<DataError>([&] { read(bytes, dimensions); });
  }

  testing::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_ / "train-images-idx3-ubyte";
};

TEST_F(Idx, ReadsPlainImages) {
  const IdxArray array = read(idx({3, 4, 5}));
  EXPECT_EQ(array.sizes, (std::vector<std::int64_t>{3, 4, 5}));
  ASSERT_EQ(array.values.size(), 60U);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(array.values[i], i);
}

TEST_F(Idx, ReadsLabels) { EXPECT_EQ(read(idx({7}, 10), 1).values.size(), 7U); }

TEST_F(Idx, ReadsGzipByContentWhateverTheName) {
  EXPECT_EQ(read(gzip(idx({3, 4, 5}))).values, read(idx({3, 4, 5})).values);
}

TEST_F(Idx, ReadsAGzipOfSeveralMembers) {
  const std::string raw = idx({3, 4, 5});
  EXPECT_EQ(read(gzip(raw.substr(0, 30)) + gzip(raw.substr(30))).values, read(raw).values);
}

TEST_F(Idx, ReadsMoreThanOnePiece) {
  const std::string raw = idx({700, 28, 28});
  EXPECT_EQ(read(gzip(raw)).values, read(raw).values);
}

TEST_F(Idx, TheObserverSeesEveryRawByteInOrder) {
  const std::string raw = idx({300, 28, 28});
  for (const std::string& file : {raw, gzip(raw)}) {
    std::string seen;
    read(file, 3,
         [&](std::span<const std::uint8_t> bytes) { seen.append(bytes.begin(), bytes.end()); });
    EXPECT_TRUE(seen == raw);
  }
}

TEST_F(Idx, NamesAMissingFile) {
  const std::string message = message_of<DataError>([&] { read_idx(directory_ / "none", 3); });
  EXPECT_TRUE(says(message, {(directory_ / "none").string(), "no such file"}));
}

TEST_F(Idx, RefusesADirectory) {
  const std::string message = message_of<DataError>([&] { read_idx(directory_.path(), 3); });
  EXPECT_TRUE(says(message, {directory_.path().string(), "not a regular file"}));
}

TEST_F(Idx, RefusesWhatIsNotIdx) {
  EXPECT_TRUE(
      says(error("<html>404"), {path_.string(), "not an IDX file", "00 00 08 03", "3c 68 74 6d"}));
}

TEST_F(Idx, RefusesAnotherType) {
  EXPECT_TRUE(says(error(idx_header(0x0D, {1, 1, 1}) + "1234"),
                   {path_.string(), "u8, 3 dimensions", "f32, 3 dimensions", "only u8"}));
}

TEST_F(Idx, RefusesAnotherNumberOfDimensions) {
  EXPECT_TRUE(says(error(idx({5})), {path_.string(), "3 dimensions", "1 dimensions", "mixed up"}));
  EXPECT_TRUE(says(error(idx({5, 2, 2}), 1), {"00 00 08 01", "00 00 08 03"}));
}

TEST_F(Idx, RefusesACutAtEveryByte) {
  const std::string raw = idx({2, 3, 4});
  for (std::size_t size = 0; size < raw.size(); ++size) {
    EXPECT_TRUE(says(error(raw.substr(0, size)),
                     {path_.string(), "truncated: expected ", "found " + std::to_string(size)}))
        << size;
  }
}

TEST_F(Idx, RefusesAGzipThatBreaksOffAtEveryByte) {
  const std::string whole = gzip(idx({20, 3, 4}, 251));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    EXPECT_TRUE(says(error(whole.substr(0, size)), {path_.string(), "gzip stream breaks off"}))
        << size;
  }
}

TEST_F(Idx, RefusesAGzipWhoseContentIsCut) {
  const std::string raw = idx({2, 3, 4});
  EXPECT_TRUE(says(error(gzip(raw.substr(0, 30))),
                   {path_.string(), "truncated: expected 40 bytes, found 30"}));
}

TEST_F(Idx, RefusesAByteTooMany) {
  const std::string raw = idx({2, 3, 4});
  EXPECT_TRUE(says(error(raw + "x"), {path_.string(), "oversized: expected 40 bytes, found 41"}));
  EXPECT_TRUE(says(error(gzip(raw + "x")), {path_.string(), "oversized: expected 40", "more"}));
}

TEST_F(Idx, RefusesBytesAfterAGzip) {
  EXPECT_TRUE(says(error(gzip(idx({2, 3, 4})) + "x"), {path_.string(), "after the end"}));
}

TEST_F(Idx, FindsEveryFlippedBitOfAGzip) {
  const std::string whole = gzip(idx({20, 3, 4}, 251));
  constexpr std::size_t kHeader = 10;  // holds a date and a system, which no checksum covers
  for (std::size_t i = kHeader; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ (1 << (i % 8)));
    EXPECT_TRUE(says(error(broken), {path_.string()})) << i;
  }
}

TEST_F(Idx, NamesAWrongChecksum) {
  std::string whole = gzip(idx({2, 3, 4}));
  whole[whole.size() - 6] ^= 1;
  EXPECT_TRUE(says(error(whole), {path_.string(), "damaged", "incorrect data check"}));
}

TEST_F(Idx, RefusesSizesBeyondAnyUse) {
  const std::string header = idx_header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF});
  for (const std::string& file : {header, gzip(header)}) {
    EXPECT_TRUE(says(error(file), {path_.string(), "4294967295 x 4294967295 x 4294967295"}));
  }
}

TEST_F(Idx, DoesNotAllocateWhatTheHeaderPromises) {
  const std::string header = idx_header(8, {0x00FFFFFF, 128, 128});  // 256 GiB
  EXPECT_TRUE(says(error(header + "x"), {"truncated: expected 274877890576 bytes, found 17"}));
  EXPECT_TRUE(says(error(gzip(header + "x")), {"truncated: expected 274877890576", "found 17"}));
}

TEST_F(Idx, RefusesAGzipThatSwellsBeyondReason) {
  constexpr std::uint32_t kMember = 1 << 22;
  const std::string member = gzip(std::string(kMember, '\0'));  // 4 KiB, a thousandth
  std::string bomb = gzip(idx_header(8, {1 << 13, 1 << 10, 1 << 10}));
  for (int i = 0; i < 32; ++i) bomb += member;
  EXPECT_TRUE(says(error(bomb), {path_.string(), "swell", "gunzip"}));
  // As much is fine where it is not packed so tightly, and a little is always fine.
  EXPECT_TRUE(
      says(error(gzip(idx_header(8, {4, 1 << 10, 1 << 10})) + member + member), {"oversized"}));
  EXPECT_EQ(read(gzip(idx_header(8, {4, 1 << 10, 1 << 10})) + member).values.size(), kMember);
}

TEST_F(Idx, ScansWhatItReads) {
  const std::string raw = idx({300, 28, 28}, 251);  // two pieces
  for (const std::string& bytes : {raw, gzip(raw)}) {
    const std::span content(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const auto source = open_bytes(content, "memory");
    EXPECT_EQ(source->gzipped(), bytes != raw);
    EXPECT_EQ(source->stored(), bytes.size());
    std::vector<std::uint8_t> values;
    int pieces = 0;
    scan_idx(*source, "memory", [&](const auto& sizes, std::span<const std::uint8_t> piece) {
      EXPECT_EQ(sizes, (std::vector<std::int64_t>{300, 28, 28}));
      values.insert(values.end(), piece.begin(), piece.end());
      ++pieces;
    });
    EXPECT_EQ(values, read(raw).values);
    EXPECT_GT(pieces, 1);
  }
}

TEST_F(Idx, ScansWithTheSameStrictness) {
  const auto scan_error = [](const std::string& bytes) {
    const std::span content(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return message_of<DataError>(
        [&] { scan_idx(*open_bytes(content, "memory"), "memory", [](auto&, auto) {}); });
  };
  const std::string raw = idx({2, 3});
  for (std::size_t size = 0; size < raw.size(); ++size) {
    EXPECT_TRUE(says(scan_error(raw.substr(0, size)), {"memory: truncated"})) << size;
  }
  EXPECT_TRUE(says(scan_error(raw + "x"), {"oversized"}));
  EXPECT_TRUE(says(scan_error(idx_header(13, {2}) + "12345678"), {"f32", "only u8"}));
  EXPECT_TRUE(says(scan_error("GIF89a.."), {"not an IDX file"}));
  EXPECT_TRUE(says(scan_error(std::string("\0\0\x08\0", 4)), {"0 dimensions"}));
}

TEST_F(Idx, AcceptsAnEmptyArray) {
  EXPECT_TRUE(read(idx({0, 28, 28})).values.empty());
  EXPECT_TRUE(says(error(idx({0, 28, 28}) + "x"), {"oversized"}));
}

}  // namespace
}  // namespace ringlet::data
