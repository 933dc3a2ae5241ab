// Small files that would cost much time or memory to decode.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/data_error.h"
#include "base/memory_limits.h"
#include "data/images/decode_bytes.h"
#include "data/images/decode_share.h"
#include "data/images/picture_reader.h"
#include "tests/data/idx_files.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

using testing::as_jpeg;
using testing::as_pnm;
using testing::big_endian;
using testing::bytes_of;
using testing::gradient_image;
using testing::says;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::string message_of(const std::string& file, const ImageLimits& limits = {}) {
  PictureReader reader;
  std::string message =
      testing::message_of<DataError>([&] { reader.decode(bytes_of(file), "it", true, limits); });
  EXPECT_TRUE(
      says(testing::message_of<DataError>([&] { decode_image(bytes_of(file), "it", limits); }),
           {message.substr(0, message.find_first_of("0123456789"))}));
  return message;
}

/// The scan of a JPEG that has one, `times` times.
std::string with_scans(const std::string& jpeg, int times) {
  const std::size_t scan = jpeg.find("\xff\xda"), end = jpeg.size() - 2;
  std::string file = jpeg.substr(0, scan);
  for (int i = 0; i < times; ++i) file += jpeg.substr(scan, end - scan);
  return file + jpeg.substr(end);
}

TEST(CostlyPicture, OfManyScansIsRefused) {
  const std::string one = as_jpeg(gradient_image(16, 16, 1));
  EXPECT_EQ(decode_image(bytes_of(with_scans(one, 100)), "it").pixels,
            decode_image(bytes_of(one), "it").pixels);
  EXPECT_TRUE(
      says(message_of(with_scans(one, 101)), {"it: ", "101 scans", "at most 100", "again"}));
}

TEST(CostlyPicture, OfManyPixelsInManyScansIsRefused) {
  const std::string file = with_scans(as_jpeg(gradient_image(16, 16, 1)), 10);
  EXPECT_EQ(decode_image(bytes_of(file), "it", {.scanned_pixels = 2560}).width, 16);
  EXPECT_TRUE(says(message_of(file, {.scanned_pixels = 2559}),
                   {"it: ", "its 256 pixels in 10 scans", "at most 2559 in all", "again"}));
}

/// A PNG's beginning, and its end.
std::string png_header(std::uint32_t width, std::uint32_t height, char depth, char colour,
                       bool interlaced) {
  const std::string header = big_endian(width) + big_endian(height) + depth + colour +
                             std::string(2, '\0') + (interlaced ? '\1' : '\0');
  return "\x89PNG\r\n\x1a\n" + testing::png_chunk("IHDR", header) + testing::png_chunk("IEND", "");
}

TEST(CostlyPicture, BeyondTheMemoryIsRefused) {
  const std::string wide = png_header(20000, 5000, 16, 6, true);
  EXPECT_EQ(decode_bytes(ImageFormat::png, bytes_of(wide), 100'000'000, 4),
            2'000'000'000 + wide.size());
  EXPECT_TRUE(says(message_of(png_header(12000, 9000, 8, 2, false), {.memory = 100 * kMiB}),
                   {"it: ", "to decode", "100 MiB of memory are free", "make it smaller"}));
  EXPECT_TRUE(says(message_of(wide, {.memory = 1000 * kMiB}), {"it: ", "1000 MiB"}));
  std::string jpeg = as_jpeg(gradient_image(16, 16, 3));
  const std::size_t size = jpeg.find("\xff\xc0") + 5;
  jpeg.replace(size, 4, big_endian(9000).substr(2) + big_endian(12000).substr(2));
  EXPECT_TRUE(says(message_of(jpeg, {.memory = 100 * kMiB}), {"it: ", "to decode"}));
  EXPECT_TRUE(says(message_of("P6 12000 9000 255\n", {.memory = 100 * kMiB}), {"to decode"}));
}

TEST(CostlyPicture, OfAProgressiveJpegCountsItsCoefficients) {
  std::string jpeg = as_jpeg(gradient_image(16, 16, 3));
  EXPECT_EQ(decode_bytes(ImageFormat::jpeg, bytes_of(jpeg), 1000, 3), 7000 + jpeg.size());
  jpeg[jpeg.find("\xff\xc0") + 1] = '\xc2';
  EXPECT_EQ(decode_bytes(ImageFormat::jpeg, bytes_of(jpeg), 1000, 3), 13000 + jpeg.size());
}

/// Whether nobody gets the whole memory before `give_back` is called.
template <class GiveBack>
bool is_waited_for(GiveBack give_back) {
  std::atomic<bool> given_back{false};
  bool waited = false;
  std::thread other([&] {
    const std::uint64_t all = memory_limits().bytes;
    const DecodeShare share(all, "all", all);
    waited = given_back;
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  given_back = true;
  give_back();
  other.join();
  return waited;
}

TEST(DecodeShare, IsWaitedFor) {
  DecodeShare first(100 * kMiB, "first", 100 * kMiB), small(10, "small");
  EXPECT_TRUE(small.is_free());
  EXPECT_FALSE(first.is_free());
  EXPECT_TRUE(is_waited_for([&] { first = DecodeShare(); }));
}

TEST(DecodeShare, OfALargePictureIsGivenBackWhenItIsDoneWith) {
  const std::string file = as_pnm(gradient_image(3400, 3200, 3));
  PictureReader reader;
  EXPECT_EQ(reader.decode(bytes_of(file), "large", true).width, 3400);
  EXPECT_TRUE(is_waited_for([&] { const LetGo done(reader); }));
}

}  // namespace
}  // namespace ringlet::data
