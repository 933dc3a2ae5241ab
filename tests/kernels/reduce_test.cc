#include "kernels/reduce.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "kernels/reduction.h"
#include "tests/kernels/harness.h"
#include "tests/support/narrow.h"

namespace ringlet::test {
namespace {

/// The right result, from the sources' elements as doubles and integers.
double combined(ReduceOp op, const std::vector<double>& values, int divisor) {
  double result = values[0];
  for (std::size_t k = 1; k < values.size(); ++k) {
    const double next = values[k];
    if (op == ReduceOp::min) result = std::min(result, next);
    if (op == ReduceOp::max) result = std::max(result, next);
    if (op == ReduceOp::sum || op == ReduceOp::mean) result += next;
  }
  return op == ReduceOp::mean ? result / divisor : result;
}

class Reduce : public OperationTest {
 protected:
  template <class T>
  Tensor stored(Device& device, const std::vector<T>& values, std::int64_t room = 0) const {
    const auto count = static_cast<std::int64_t>(values.size());
    Tensor tensor(device, {count + room}, DTypeOf<T>::value);
    copy_from_host(device.compute(), values.data(), tensor.view().slice(0, count));
    return tensor;
  }

  /// The sources' numbers, whole and small: every type adds them exactly.
  template <class T>
  static std::vector<std::vector<T>> sources_of(int sources, std::int64_t count) {
    std::vector<std::vector<T>> all;
    for (int k = 0; k < sources; ++k) {
      auto& values = all.emplace_back();
      for (std::int64_t i = 0; i < count; ++i) {
        values.push_back(narrowed<T>(static_cast<double>((7 * i + 13 * k * (i + 1)) % 31 - 15)));
      }
    }
    return all;
  }

  template <class T>
  static std::vector<T> expected(ReduceOp op, const std::vector<std::vector<T>>& sources,
                                 int divisor) {
    std::vector<T> result;
    for (std::size_t i = 0; i < sources[0].size(); ++i) {
      std::vector<double> values;
      for (const auto& source : sources) values.push_back(widened(source[i]));
      double value = combined(op, values, divisor);
      if (std::is_same_v<T, std::int32_t>) value = std::trunc(value);
      result.push_back(narrowed<T>(static_cast<double>(static_cast<float>(value))));
    }
    return result;
  }

  /// Elements [offset, offset + count) of `sources` arrays, reduced into as many targets.
  template <class T>
  void check(ReduceOp op, int sources, int targets, std::int64_t count, std::int64_t offset,
             Stores stores, int divisor = 3) {
    SCOPED_TRACE(::testing::Message() << name_of(op) << " of " << sources << " x " << count
                                      << " at " << offset << " to " << targets);
    const auto values = sources_of<T>(sources, count + offset);
    const auto right = expected(op, values, divisor);
    for (int k = 0; k < targets; ++k) {
      const Tensor result = run([&](Device& device) {
        std::vector<Tensor> xs, ys;
        std::vector<ConstView> from;
        std::vector<View> to;
        for (const auto& source : values) {
          xs.push_back(stored(device, source));
          from.push_back(xs.back().view().slice(offset, offset + count));
        }
        for (int t = 0; t < targets; ++t) {  // the first target is the first source
          if (t > 0) ys.push_back(stored(device, values[0]));
          const Tensor& y = t == 0 ? xs[0] : ys.back();
          to.push_back(y.view().slice(offset, offset + count));
        }
        reduce(device.compute(), op, from, to, {.divisor = divisor, .stores = stores});
        return k == 0 ? std::move(xs[0]) : std::move(ys[static_cast<std::size_t>(k - 1)]);
      });
      const auto actual = read<T>(result);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        const T wanted = i < static_cast<std::size_t>(offset) ? values[0][i] : right[i];
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bytes are what is meant
        ASSERT_EQ(std::memcmp(&actual[i], &wanted, sizeof(T)), 0)
            << "element " << i << ": " << widened(actual[i]) << ", not " << widened(wanted);
      }
    }
  }

  template <class T>
  void check_all() {
    for (const ReduceOp op : kReduceOps) {
      for (const int sources : {1, 2, 3, 5}) {
        for (const std::int64_t count : {0, 1, 31, 511, 513, 2000}) {
          check<T>(op, sources, 1, count, 0, Stores::cached);
          check<T>(op, sources, 2, count, 1, Stores::streaming);
          check<T>(op, sources, 2, count, 1, Stores::across);
        }
      }
    }
  }
};

TEST_P(Reduce, F32) { check_all<float>(); }
TEST_P(Reduce, F16) { check_all<Half>(); }
TEST_P(Reduce, BF16) { check_all<BFloat16>(); }
TEST_P(Reduce, I32) { check_all<std::int32_t>(); }

TEST_P(Reduce, SplitsLongArraysOverThreads) {
  check<float>(ReduceOp::sum, 3, 2, 100'003, 3, Stores::streaming);
}

/// The usual cases have loops of their own, and so have long ranges.
TEST_P(Reduce, TakesOneOrTwoSourcesAtOnce) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
    for (const std::int64_t count : {1, 63, 32'767, 32'768, 32'769, 70'001}) {
      for (const int sources : {1, 2}) {
        for (const int targets : {1, 2}) {
          check<float>(op, sources, targets, count, 3, Stores::cached, 1);
          check<std::int32_t>(op, sources, targets, count, 0, Stores::cached, 1);
        }
      }
    }
  }
}

/// As reduce() of the two, y first, also where several threads share the work.
TEST_P(Reduce, IntoOneOfTwoIsTheSame) {
  const auto check_into = [&]<class T>(std::type_identity<T>, std::int64_t count) {
    const auto values = sources_of<T>(2, count);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
      const Tensor y = run([&](Device& device) {
        Tensor into = stored(device, values[0]);
        const Tensor x = stored(device, values[1]);
        reduce_into(device.compute(), op, x, into);
        device.compute().synchronize();
        return into;
      });
      const auto actual = read<T>(y), right = expected(op, values, 1);
      EXPECT_EQ(std::memcmp(actual.data(), right.data(), right.size() * sizeof(T)), 0)
          << name_of(op) << " of " << count;
    }
  };
  for (const std::int64_t count : {1, 17, 70'001}) {
    check_into(std::type_identity<float>{}, count);
    check_into(std::type_identity<Half>{}, count);
    check_into(std::type_identity<BFloat16>{}, count);
    check_into(std::type_identity<std::int32_t>{}, count);
  }
}

TEST_P(Reduce, AddsNarrowFloatsInF32AndRoundsOnce) {
  // One at a time, each of the small ones would be rounded away.
  const float large = 256, small = 1;
  Tensor y(*devices_[0], {1}, DType::bf16);
  std::vector<Tensor> xs;
  std::vector<ConstView> from;
  for (int k = 0; k < 9; ++k) {
    xs.push_back(stored(*devices_[0], std::vector{to_bfloat16(k == 0 ? large : small)}));
    from.emplace_back(xs.back());
  }
  const View to = y;
  reduce(devices_[0]->compute(), ReduceOp::sum, from, {&to, 1});
  EXPECT_EQ(widen(read<BFloat16>(y)[0]), 264.0F);
}

TEST_P(Reduce, ShowsBrokenNumbers) {
  for (const ReduceOp op : kReduceOps) {
    for (const int broken : {0, 1}) {
      const Tensor x = stored(*devices_[0], std::vector<float>{broken == 0 ? kNaN : 1});
      const Tensor y = stored(*devices_[0], std::vector<float>{broken == 1 ? kNaN : 2});
      reduce_into(devices_[0]->compute(), op, x, y);
      EXPECT_TRUE(std::isnan(read(y)[0])) << name_of(op);
    }
  }
}

/// As two ranks do: each combines its own with the other's.
TEST_P(Reduce, LeastAndGreatestHaveTheSameBitsFromEitherSide) {
  const float other_nan = -std::bit_cast<float>(std::bit_cast<std::uint32_t>(kNaN) | 5U);
  std::vector<float> one{0.0F, -0.0F, kNaN, 3, kNaN, -0.0F},
      other{-0.0F, 0.0F, other_nan, kNaN, 3, -0.0F};
  for (int i = 0; i < 5; ++i) {  // in vectors, and beside them
    one.insert(one.end(), one.begin(), one.begin() + 6);
    other.insert(other.end(), other.begin(), other.begin() + 6);
  }
  const auto combined = [this](ReduceOp op, const std::vector<float>& own,
                               const std::vector<float>& others) {
    const Tensor x = stored(*devices_[0], others), y = stored(*devices_[0], own);
    reduce_into(devices_[0]->compute(), op, x, y);
    std::vector<std::uint32_t> bits;
    for (const float number : read(y)) bits.push_back(std::bit_cast<std::uint32_t>(number));
    return bits;
  };
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const auto bits = combined(op, one, other);
    EXPECT_EQ(bits, combined(op, other, one)) << name_of(op);
    const std::uint32_t minus_zero = 0x80000000;
    EXPECT_EQ(bits[0], op == ReduceOp::min ? minus_zero : 0) << name_of(op);
    EXPECT_EQ(bits[1], bits[0]) << name_of(op);
    EXPECT_EQ(bits[5], minus_zero) << name_of(op);
  }
}

TEST_P(Reduce, IntegersWrapAround) {
  const Tensor x = stored(*devices_[0], std::vector<std::int32_t>{2'000'000'000, -7});
  const Tensor y = stored(*devices_[0], std::vector<std::int32_t>{2'000'000'000, 0});
  reduce_into(devices_[0]->compute(), ReduceOp::sum, x, y);
  EXPECT_EQ(read<std::int32_t>(y), (std::vector<std::int32_t>{-294'967'296, -7}));
}

INSTANTIATE_TEST_SUITE_P(Setups, Reduce, with_cuda(setups_of(Layout::nchw)),
                         [](const auto& test) { return name_of(test); });

TEST(ReduceArrays, GivesTheBytesOfReduce) {
  const auto device = open_device({});
  Stream& stream = device->compute();
  const auto check = [&stream]<class T>(std::type_identity<T>, int sources, std::size_t count) {
    std::vector<std::vector<T>> values;
    std::vector<const void*> arrays;
    std::vector<ConstView> views;
    for (int k = 0; k < sources; ++k) {
      auto& source = values.emplace_back();
      for (std::size_t i = 0; i < count; ++i) {
        source.push_back(narrowed<T>(static_cast<double>(i * 7 % 31) / 3 - k));
      }
    }
    const auto length = static_cast<std::int64_t>(count);
    for (const auto& source : values) {
      arrays.push_back(source.data());
      views.emplace_back(source.data(), Shape{length}, DTypeOf<T>::value);
    }
    for (const ReduceOp op : kReduceOps) {
      std::vector<T> one(count), other(count), another(count);
      const View into(one.data(), {length}, DTypeOf<T>::value);
      reduce(stream, op, views, {&into, 1}, {.divisor = sources});
      void* const targets[] = {other.data(), another.data()};
      reduce_arrays(stream, op, {arrays, targets, DTypeOf<T>::value, length}, {.divisor = sources});
      for (const void* const target : targets) {
        EXPECT_EQ(std::memcmp(one.data(), target, count * sizeof(T)), 0)
            << name_of(op) << " of " << sources << " x " << count;
      }
    }
  };
  for (const int sources : {1, 2, 3, 64}) {
    for (const std::size_t count : {1U, 33U, 40'000U}) {
      check(std::type_identity<float>{}, sources, count);
      check(std::type_identity<Half>{}, sources, count);
      check(std::type_identity<BFloat16>{}, sources, count);
      check(std::type_identity<std::int32_t>{}, sources, count);
    }
  }
}

TEST(ReduceArrays, RefusesWhatReduceRefuses) {
  const auto device = open_device({});
  float y = 0;
  const void* const x = &y;
  void* const to = &y;
  const std::span one(&x, 1);
  const std::span into(&to, 1);
  const std::vector<const void*> many(kMaxReduced + 1, &y);
  const std::vector<void*> into_many(kMaxReduced + 1, &y);
  const auto reduce = [&](std::span<const void* const> xs, std::span<void* const> ys, DType dtype,
                          int divisor) {
    reduce_arrays(device->compute(), ReduceOp::mean, {xs, ys, dtype, 1}, {.divisor = divisor});
  };
  EXPECT_NO_THROW(reduce(one, into, DType::f32, 1));
  EXPECT_THROW(reduce({}, into, DType::f32, 1), ContractError);
  EXPECT_THROW(reduce(many, into, DType::f32, 1), ContractError);
  EXPECT_THROW(reduce(one, {}, DType::f32, 1), ContractError);
  EXPECT_THROW(reduce(one, into_many, DType::f32, 1), ContractError);
  EXPECT_THROW(reduce(one, into, DType::u8, 1), ContractError);
  EXPECT_THROW(reduce(one, into, DType::f32, 0), ContractError);
}

TEST(NarrowFloats, AllOfThemComeBackFromF32) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const BFloat16 brain{static_cast<std::uint16_t>(bits)};
    const double value = widened(half), other = widened(brain);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widen(half)) && std::isnan(widen(to_half(widen(half))))) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(widen(half)), value) << bits;
      EXPECT_EQ(to_half(widen(half)).bits, bits);
    }
    if (std::isnan(other)) {
      EXPECT_TRUE(std::isnan(widen(brain)) && std::isnan(widen(to_bfloat16(widen(brain))))) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(widen(brain)), other) << bits;
      EXPECT_EQ(to_bfloat16(widen(brain)).bits, bits);
    }
  }
}

TEST(NarrowFloats, AreTheNearestOnesAndEvenInTheMiddle) {
  std::vector<float> values = {0x1p-24F, 0x1p-25F, 0x1.8p-25F,  0x1.0p-15F, 65504, 65519.99F, 65520,
                               1e38F,    3.39e38F, 0x1.FFp-15F, 1e-45F,     2049,  2051,      257};
  for (const float value : random_floats(20'000, 1)) values.push_back(value);
  for (const float value : random_floats(20'000, 2)) values.push_back(value * 0x1p-14F);
  for (const float value : random_floats(20'000, 3)) values.push_back(value * 70'000);
  for (const float value : values) {
    for (const float x : {value, -value}) {
      EXPECT_EQ(to_half(x).bits, narrowed<Half>(static_cast<double>(x)).bits) << x;
      EXPECT_EQ(to_bfloat16(x).bits, narrowed<BFloat16>(static_cast<double>(x)).bits) << x;
    }
  }
}

}  // namespace
}  // namespace ringlet::test
