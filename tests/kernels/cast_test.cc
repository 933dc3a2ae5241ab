#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/reduction.h"
#include "tests/kernels/harness.h"
#include "tests/support/narrow.h"

namespace ringlet::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Cast : public OperationTest {
 protected:
  /// Elements [offset, offset + x.size()) of two arrays: the first cast to the second.
  template <class To, class From>
  std::vector<To> casted(const std::vector<From>& x, std::int64_t offset = 0) {
    const auto end = static_cast<std::int64_t>(x.size()) + offset;
    const Tensor result = run([&](Device& device) {
      const Tensor from(device, {end}, DTypeOf<From>::value);
      Tensor to(device, {end}, DTypeOf<To>::value);
      const std::vector<To> guard(static_cast<std::size_t>(end), narrowed<To>(7));
      copy_from_host(device.compute(), guard.data(), to);
      const View source = from.view().slice(offset, end);
      copy_from_host(device.compute(), x.data(), source);
      cast(device.compute(), source, to.view().slice(offset, end));
      device.compute().synchronize();
      return to;
    });
    auto all = read<To>(result);
    for (std::int64_t i = 0; i < offset; ++i) {
      EXPECT_EQ(widened(all[static_cast<std::size_t>(i)]), 7) << "beside the array";
    }
    all.erase(all.begin(), all.begin() + offset);
    return all;
  }

  template <class T>
  void expect_nearest() {
    for (const std::int64_t count : {0, 1, 15, 16, 17, 1000, 70'001}) {
      for (const std::int64_t offset : {0, 1}) {
        auto x = random_floats(count, static_cast<std::uint32_t>(count));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], int(i % 60) - 40);
        const auto narrow = casted<T>(x, offset);
        ASSERT_EQ(narrow.size(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(narrow[i].bits, narrowed<T>(static_cast<double>(x[i])).bits) << x[i];
        }
      }
    }
  }

  /// Every pattern of bits there is.
  template <class T>
  void expect_widened() {
    std::vector<T> x;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      x.push_back({static_cast<std::uint16_t>(bits)});
    }
    const auto wide = casted<float>(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = widened(x[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      } else {
        ASSERT_EQ(static_cast<double>(wide[i]), expected) << i;
      }
    }
  }
};

TEST_P(Cast, NarrowsToTheNearestF16) { expect_nearest<Half>(); }
TEST_P(Cast, NarrowsToTheNearestBF16) { expect_nearest<BFloat16>(); }
TEST_P(Cast, WidensEveryF16) { expect_widened<Half>(); }
TEST_P(Cast, WidensEveryBF16) { expect_widened<BFloat16>(); }

TEST_P(Cast, KeepsWhatIsNotFinite) {
  const std::vector<float> x{65519, 65520, -1e30F, kInfinity, -kInfinity, kNaN};
  const auto half = casted<Half>(x);
  EXPECT_EQ(widen(half[0]), 65504.0F);
  for (const std::size_t i : {1, 3}) EXPECT_EQ(widen(half[i]), kInfinity);
  for (const std::size_t i : {2, 4}) EXPECT_EQ(widen(half[i]), -kInfinity);
  EXPECT_TRUE(std::isnan(widen(half[5])));
  const auto brain = casted<BFloat16>(x);
  EXPECT_EQ(widen(brain[0]), 65536.0F);
  EXPECT_TRUE(std::isfinite(widen(brain[2])));
  EXPECT_EQ(widen(brain[3]), kInfinity);
  EXPECT_TRUE(std::isnan(widen(brain[5])));
}

INSTANTIATE_TEST_SUITE_P(Setups, Cast, with_cuda(setups_of(Layout::nchw)),
                         [](const auto& test) { return name_of(test); });

}  // namespace
}  // namespace ringlet::test
