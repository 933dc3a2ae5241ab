// The operations of kernels/margin_softmax.h on each device: together they are the loss and its
// gradients (tests/reference/margin_softmax.h).
#include "kernels/margin_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/linear.h"
#include "kernels/row_sample.h"
#include "kernels/softmax_shards.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/margin_cases.h"

namespace ringlet::test {
namespace {

constexpr float kSeed = 0.25F;

class MarginSoftmax : public OperationTest {
 protected:
  /// Losses, dx and dw one after the other, with the classes in blocks that end at `cuts`: the
  /// first two are one part, the others one each.
  Tensor whole(Device& device, const MarginSpec& spec, const MarginData& data,
               const std::vector<std::int64_t>& cuts, const std::vector<float>& epochs = {}) {
    Stream& stream = device.compute();
    const std::int64_t samples = std::ssize(data.x), classes = std::ssize(data.w),
                       columns = std::ssize(data.x[0]);
    const Tensor x = upload(device, {samples, columns}, flat(data.x)),
                 w = upload(device, {classes, columns}, flat(data.w)),
                 labels = upload(device, {samples}, data.labels);
    const Tensor of_epochs = epochs.empty() ? Tensor() : upload(device, {1}, epochs);
    const Tensor of_x(device, {samples}), of_w(device, {classes}), targets(device, {samples, 2}),
        cosines(device, {samples});
    inverse_norms(stream, x, of_x);
    inverse_norms(stream, w, of_w);
    margin_targets(stream, spec, x, w, labels, 0, of_epochs, targets, cosines);
    const std::int64_t parts = std::ssize(cuts) - 1;
    const Tensor part(device, {parts, samples, 3}), merged(device, {samples, 3});
    std::vector<Tensor> products;
    std::int64_t begin = 0;
    const auto rows = [&](const Tensor& matrix, std::int64_t first, std::int64_t last) {
      return matrix.view()
          .reshaped({classes * columns})
          .slice(first * columns, last * columns)
          .reshaped({last - first, columns});
    };
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      const Tensor& product = products.emplace_back(device, Shape{samples, cuts[b] - begin});
      linear_forward(stream, x, rows(w, begin, cuts[b]), {}, Activation::none, product);
      const std::int64_t q = b == 0 ? 0 : static_cast<std::int64_t>(b) - 1;
      margin_softmax_part(stream, spec, product, of_x, of_w.view().slice(begin, cuts[b]), labels,
                          begin, targets, b == 1,
                          part.view()
                              .reshaped({parts * samples * 3})
                              .slice(q * samples * 3, (q + 1) * samples * 3)
                              .reshaped({samples, 3}));
      begin = cuts[b];
    }
    softmax_shards_merge(stream, part, merged);
    const Tensor right = upload(device, {2}, std::vector<std::int32_t>{0, 0});
    softmax_shards_right(stream, part, merged, of_x, 0, samples, right);
    copy_to_host(stream, right, right_.data());
    const Tensor angles = upload(device, {4}, std::vector<float>{0, 0, 0, 0});
    margin_angles(stream, spec, cosines, part, 0, samples, angles);
    copy_to_host(stream, angles, angles_.data());
    const Tensor dx(device, {samples, columns}), dw(device, {classes, columns}),
        seed = upload(device, {1}, std::vector<float>{kSeed});
    begin = 0;
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      margin_softmax_gradient(stream, spec, of_x, of_w.view().slice(begin, cuts[b]), labels, begin,
                              targets, merged, seed, products[b]);
      if (cuts[b] > begin) {
        linear_backward_data(stream, rows(w, begin, cuts[b]), products[b], begin == 0 ? 0 : 1, dx);
        linear_backward_weight(stream, x, products[b], 0, rows(dw, begin, cuts[b]));
      }
      begin = cuts[b];
    }
    project_rows(stream, x, of_x, dx);
    project_rows(stream, w, of_w, dw);
    const std::int64_t each[] = {samples * 3, samples * columns, classes * columns};
    Tensor all(device, {each[0] + each[1] + each[2]});
    copy(stream, merged.view().reshaped({each[0]}), all.view().slice(0, each[0]));
    copy(stream, dx.view().reshaped({each[1]}), all.view().slice(each[0], each[0] + each[1]));
    copy(stream, dw.view().reshaped({each[2]}),
         all.view().slice(each[0] + each[1], each[0] + each[1] + each[2]));
    return all;
  }

  void expect_reference(const MarginSpec& spec, const MarginData& data,
                        const std::vector<std::int64_t>& cuts, double most = 2e-5,
                        double most_of_angle = 1e-5) {
    const auto found = read(run([&](Device& device) { return whole(device, spec, data, cuts); }));
    const auto wanted =
        reference::margin_softmax(spec, data.x, data.w, data.labels, static_cast<double>(kSeed));
    std::vector<double> losses;
    for (std::size_t n = 0; n < data.x.size(); ++n) {
      losses.push_back(static_cast<double>(found[3 * n + 2]));
    }
    const auto from = found.begin() + 3 * std::ssize(data.x);
    const std::int64_t of_x = std::ssize(data.x) * std::ssize(data.x[0]);
    EXPECT_LT(relative_l2(std::vector<float>(losses.begin(), losses.end()), wanted.losses), 2e-6);
    EXPECT_LT(relative_l2(std::vector<float>(from, from + of_x), flat_doubles(wanted.dx)), most);
    EXPECT_LT(relative_l2(std::vector<float>(from + of_x, found.end()), flat_doubles(wanted.dw)),
              most);
    EXPECT_EQ(right_[0], wanted.right);
    EXPECT_EQ(right_[1], wanted.undirected);
    // Of a cosine in f32 an angle is known to about 6e-8 / sin, which is above 0.005 here.
    const auto all = static_cast<double>(data.x.size());
    EXPECT_NEAR(static_cast<double>(angles_[0]), wanted.own_angles, most_of_angle * all);
    EXPECT_EQ(static_cast<double>(angles_[1]), all);
    EXPECT_NEAR(static_cast<double>(angles_[2]), wanted.other_angles, most_of_angle * all);
    EXPECT_EQ(angles_[3], static_cast<float>(wanted.with_others));
  }

  std::array<std::int32_t, 2> right_{};
  std::array<float, 4> angles_{};
};
INSTANTIATE_TEST_SUITE_P(Setups, MarginSoftmax, nchw_setups(setups_of(Layout::nchw)), name_of);

TEST_P(MarginSoftmax, IsThatOfPlainFormulas) {
  for (const MarginCase& c : margin_cases()) {
    SCOPED_TRACE(c.name);
    expect_reference(c.spec, margin_data(5, 7, 20), {2, 2, 3, 7});
    expect_reference(c.spec, margin_data(17, 300, 33), {100, 163, 163, 300});
  }
  expect_reference(margin_cases()[3].spec, margin_data(1, 1, 3), {0, 1});
}

// At an angle of 1e-4, 1 - c^2 of an f32 c is noise. What the margin multiplies by 1 / sin theta is
// rounded as products are.
TEST_P(MarginSoftmax, SeesSmallAngles) {
  constexpr double kMost = 1e-3;
  constexpr double kAngle = 3.5e-4;  // arccos of the last f32 below 1: 1 - 2^-24
  MarginData data{{{1, 1e-4, 0}}, {{3, 0, 0}, {2.5, 0.1, 1}}, {0}};
  expect_reference(spec_of(1, 0.5, 0, MarginGuard::hard), data, {1, 2}, kMost, kAngle);
  data.x[0] = {-1, 1e-4, 0};
  expect_reference(spec_of(1, 0.5, 0, MarginGuard::none), data, {1, 2}, kMost, kAngle);
}

TEST_P(MarginSoftmax, GrowsInTheFirstEpochs) {
  const MarginData data = margin_data(17, 10, 8);
  MarginSpec grows = spec_of(1.5, 0.4, 0.2, MarginGuard::smooth);
  grows.warmup_epochs = 4;
  const auto bits = [&](const MarginSpec& spec, const std::vector<float>& epochs) {
    return read(run([&](Device& device) { return whole(device, spec, data, {5, 10}, epochs); }));
  };
  EXPECT_EQ(bits(grows, {1}), bits(spec_of(1.125, 0.1, 0.05, MarginGuard::smooth), {}));
  EXPECT_EQ(bits(grows, {0}), bits(spec_of(1, 0, 0, MarginGuard::smooth), {}));
  const MarginSpec grown = spec_of(1.5, 0.4, 0.2, MarginGuard::smooth);
  for (const float epochs : {4.0F, 9.0F}) EXPECT_EQ(bits(grows, {epochs}), bits(grown, {}));
  EXPECT_EQ(bits(grows, {}), bits(grown, {}));
}

TEST_P(MarginSoftmax, ABrokenNumberStaysVisible) {
  MarginData data = margin_data(5, 7, 20);
  data.x[3][4] = std::numeric_limits<double>::quiet_NaN();
  const auto found = read(run([&](Device& device) {
    return whole(device, margin_cases()[3].spec, data, {3, 7});
  }));
  EXPECT_TRUE(std::isnan(found[3 * 3 + 2]));
  const MarginData only{{data.x[3], data.x[3]}, data.w, {0, 1}};
  run([&](Device& device) { return whole(device, {}, only, {3, 7}); });
  EXPECT_EQ(right_[0], 0);
  EXPECT_FALSE(std::isnan(found[3 * 4 + 2]));
}

/// Columns without a class change nothing of the others, and have no gradient.
TEST_P(MarginSoftmax, PassesOverColumnsWithoutAClass) {
  constexpr std::int64_t kSamples = 5, kAll = 40, kColumns = 12;
  const MarginData data = margin_data(kSamples, kAll, kColumns);
  std::vector<std::int32_t> listed;  // every third, those of the samples, and room for more
  for (std::int32_t row = 0; row < kAll; ++row) {
    const bool own = std::ranges::find(data.labels, row) != data.labels.end();
    if (own || row % 3 == 0) listed.push_back(row);
  }
  const auto classes = static_cast<std::size_t>(std::ssize(listed));
  MarginData few{data.x, {}, {}};
  for (const std::int32_t row : listed) few.w.push_back(data.w[static_cast<std::size_t>(row)]);
  for (const std::int32_t label : data.labels) {
    few.labels.push_back(
        static_cast<std::int32_t>(std::ranges::find(listed, label) - listed.begin()));
  }
  listed.resize(classes + 19, -1);  // also whole vectors of them
  const std::int64_t room = std::ssize(listed);
  for (const MarginCase& c : margin_cases()) {
    SCOPED_TRACE(c.name);
    const Tensor all = run([&](Device& device) {
      Stream& stream = device.compute();
      const Tensor rows = upload(device, {room}, listed),
                   x = upload(device, {kSamples, kColumns}, flat(data.x)),
                   w = upload(device, {kAll, kColumns}, flat(data.w)),
                   labels = upload(device, {kSamples}, data.labels);
      const Tensor gathered(device, {room, kColumns}), of_x(device, {kSamples}),
          of_w(device, {room}), own(device, {kSamples}, DType::i32), targets(device, {kSamples, 2}),
          part(device, {1, kSamples, 3}), merged(device, {kSamples, 3}),
          dx(device, {kSamples, kColumns}), products(device, {kSamples, room});
      Tensor result(device, {3 * kSamples + room * kColumns});
      gather_rows(stream, w, rows, gathered, of_w);
      find_rows(stream, rows, labels, 0, 0, false, own);
      inverse_norms(stream, x, of_x);
      margin_targets(stream, c.spec, x, gathered, own, 0, {}, targets);
      linear_forward(stream, x, gathered, {}, Activation::none, products);
      margin_softmax_part(stream, c.spec, products, of_x, of_w, own, 0, targets, false,
                          part.view().reshaped({kSamples, 3}));
      softmax_shards_merge(stream, part, merged);
      margin_softmax_gradient(stream, c.spec, of_x, of_w, own, 0, targets, merged,
                              upload(device, {1}, std::vector<float>{kSeed}), products);
      linear_backward_weight(
          stream, x, products, 0,
          result.view().slice(3 * kSamples, result.shape().count()).reshaped({room, kColumns}));
      project_rows(
          stream, gathered, of_w,
          result.view().slice(3 * kSamples, result.shape().count()).reshaped({room, kColumns}));
      copy(stream, merged.view().reshaped({3 * kSamples}), result.view().slice(0, 3 * kSamples));
      return result;
    });
    const auto found = read(all);
    const auto wanted =
        reference::margin_softmax(c.spec, few.x, few.w, few.labels, static_cast<double>(kSeed));
    std::vector<float> losses;
    for (std::size_t n = 0; n < kSamples; ++n) losses.push_back(found[3 * n + 2]);
    EXPECT_LT(relative_l2(losses, wanted.losses), 2e-6);
    const auto from = found.begin() + 3 * kSamples;
    const auto behind = from + static_cast<std::ptrdiff_t>(classes) * kColumns;
    EXPECT_LT(relative_l2(std::vector<float>(from, behind), flat_doubles(wanted.dw)), 2e-5);
    EXPECT_EQ(std::count(behind, found.end(), 0.0F), std::distance(behind, found.end()));
  }
}

/// Where none of a rank's classes is of the step.
TEST_P(MarginSoftmax, OfNoColumnsIsEmpty) {
  constexpr std::int64_t kSamples = 3, kRoom = 21;
  const Tensor parts = run([&](Device& device) {
    Stream& stream = device.compute();
    const Tensor products = upload(device, {kSamples, kRoom}, random_floats(kSamples * kRoom, 1)),
                 of_x = upload(device, {kSamples}, std::vector<float>(kSamples, 1)),
                 of_w = upload(device, {kRoom}, std::vector<float>(kRoom, -1)),
                 labels = upload(device, {kSamples}, std::vector<std::int32_t>(kSamples, -1)),
                 targets =
                     upload(device, {kSamples, 2}, std::vector<float>(2 * kSamples, -INFINITY));
    Tensor part(device, {kSamples, 3});
    margin_softmax_part(stream, spec_of(1, 0.5, 0, MarginGuard::hard), products, of_x, of_w, labels,
                        0, targets, false, part);
    return part;
  });
  for (std::size_t n = 0; n < kSamples; ++n) {
    EXPECT_EQ(read(parts)[3 * n], -INFINITY);
    EXPECT_EQ(read(parts)[3 * n + 1], 0);
    EXPECT_EQ(read(parts)[3 * n + 2], -INFINITY);
  }
}

TEST_P(MarginSoftmax, FindsLabelsInLists) {
  Device& device = *devices_[0];
  Stream& stream = device.compute();
  const Tensor rows = upload(device, {7}, std::vector<std::int32_t>{0, 4, 5, -1, 1, 3, -1}),
               labels = upload(
                   device, {9},
                   std::vector<std::int32_t>{100, 104, 105, 106, 101, 103, 99, -1, 2'000'000'000}),
               columns(device, {9}, DType::i32);
  find_rows(stream, rows.view().slice(0, 4), labels, 100, 0, false, columns);
  EXPECT_EQ(test::read<std::int32_t>(stream, columns),
            (std::vector<std::int32_t>{0, 1, 2, -1, -1, -1, -1, -1, -1}));
  find_rows(stream, rows.view().slice(4, 7), labels, 100, 4, true, columns);
  EXPECT_EQ(test::read<std::int32_t>(stream, columns),
            (std::vector<std::int32_t>{0, 1, 2, -1, 4, 5, -1, -1, -1}));
  find_rows(stream, rows.view().slice(0, 0), labels, 100, 4, false, columns);
  EXPECT_EQ(test::read<std::int32_t>(stream, columns), std::vector<std::int32_t>(9, -1));
}

}  // namespace
}  // namespace ringlet::test
