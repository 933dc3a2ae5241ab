// Copying to memory that another core reads: every length and place, by whichever way.
#include "comm/transport/peer_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ringlet::comm {
namespace {

/// Copies so many bytes from and to such places, and looks at what lies around them too.
bool copies(std::size_t bytes, std::size_t from_at, std::size_t to_at, int salt) {
  constexpr std::size_t kAround = 128;
  constexpr unsigned char kUntouched = 0xEE;
  std::vector<unsigned char> from(bytes + 2 * kAround), to(bytes + 2 * kAround, kUntouched);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<unsigned char>(7 * i + i / 251 + static_cast<std::size_t>(salt));
  }
  copy_across(to.data() + to_at, from.data() + from_at, static_cast<std::int64_t>(bytes));
  const auto begin = to.begin() + static_cast<std::ptrdiff_t>(to_at);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
  const auto is_untouched = [](unsigned char byte) { return byte == kUntouched; };
  return std::equal(begin, end, from.begin() + static_cast<std::ptrdiff_t>(from_at)) &&
         std::all_of(to.begin(), begin, is_untouched) && std::all_of(end, to.end(), is_untouched);
}

TEST(CopyAcross, CopiesEveryLengthWhateverWayItTries) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 2047, 2048, 2200, 8191, 8192, 8320, 70001}) {
    for (const std::size_t from_at : {0, 5}) {
      for (const std::size_t to_at : {0, 1, 63}) {
        ASSERT_TRUE(copies(bytes, from_at, to_at, 1)) << bytes << ' ' << from_at << ' ' << to_at;
      }
    }
  }
}

// It tries both ways by turns at first, goes by one for some calls, and tries both again.
TEST(CopyAcross, CopiesThroughAllItsLooks) {
  for (int call = 0; call < 200; ++call) {
    ASSERT_TRUE(copies(4000, 0, 3, call)) << call;
    ASSERT_TRUE(copies(20000, 1, 0, call)) << call;
  }
}

}  // namespace
}  // namespace ringlet::comm
