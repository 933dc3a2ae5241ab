// kernels/grid/margin_softmax.h on the host (grid_fixture.h), against plain formulas.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/grid/margin_softmax.h"
#include "kernels/grid/softmax_shards.h"
#include "tests/kernels/grid_fixture.h"
#include "tests/kernels/margin_cases.h"

namespace ringlet::test {
namespace {

std::vector<float> products_of(const reference::Rows& x, const reference::Rows& w,
                               std::size_t begin, std::size_t end) {
  std::vector<float> products;
  for (const auto& row : x) {
    for (std::size_t j = begin; j < end; ++j) {
      products.push_back(static_cast<float>(reference::dot(row, w[j])));
    }
  }
  return products;
}

/// g w, or g^T x, of a matrix of products.
void add_rows(reference::Rows& sum, const std::vector<float>& g, const reference::Rows& rows,
              std::size_t begin, std::size_t end, bool transposed) {
  const std::size_t samples = g.size() / (end - begin), width = end - begin;
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t j = 0; j < width; ++j) {
      const auto& from = rows[transposed ? n : begin + j];
      auto& to = sum[transposed ? begin + j : n];
      for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] += static_cast<double>(g[n * width + j]) * from[i];
      }
    }
  }
}

TEST_P(Grid, MarginSoftmax) {
  constexpr std::size_t kCut = 3, kClasses = 300;
  constexpr std::int64_t kSamples = 5, kColumns = 20;
  const MarginData data = margin_data(kSamples, kClasses, kColumns);
  const View x = put({kSamples, kColumns}, flat(data.x)),
             w = put({std::int64_t{kClasses}, kColumns}, flat(data.w)),
             labels = put({kSamples}, data.labels), seed = put<float>({1}, {0.25F});
  for (const MarginCase& c : margin_cases()) {
    SCOPED_TRACE(c.name);
    const View of_x = blank({kSamples}), of_w = blank({std::int64_t{kClasses}}),
               targets = blank({kSamples, 2}), part = blank({1, kSamples, 3}),
               merged = blank({kSamples, 3}), right = filled<std::int32_t>({2}, 2),
               cosines = filled<float>({kSamples}, kNoCosine), angles = filled<float>({4}, 0.5F);
    grid::inverse_norms(grid_, x, of_x);
    grid::inverse_norms(grid_, w, of_w);
    grid::margin_targets(grid_, c.spec, x, w, labels, 0, {}, targets, cosines);
    reference::Rows dx(kSamples, std::vector<double>(kColumns, 0)), dw(data.w);
    for (auto& row : dw) std::fill(row.begin(), row.end(), 0);
    const View of_part(part.f32(), {kSamples, 3});
    for (const auto& [begin, end] :
         {std::pair<std::size_t, std::size_t>{0, kCut}, {kCut, kClasses}}) {
      const View inverse = of_w.slice(begin, end);
      grid::margin_softmax_part(grid_, c.spec,
                                put({kSamples, static_cast<std::int64_t>(end - begin)},
                                    products_of(data.x, data.w, begin, end)),
                                of_x, inverse, labels, static_cast<std::int64_t>(begin), targets,
                                begin > 0, of_part);
    }
    grid::softmax_shards_merge(grid_, part, merged);
    grid::softmax_shards_right(grid_, part, merged, of_x, 1, 4, right);
    cosines.f32()[4] = kNoCosine;  // another rank's class
    grid::margin_angles(grid_, c.spec, cosines, part, 1, 4, angles);
    for (const auto& [begin, end] :
         {std::pair<std::size_t, std::size_t>{0, kCut}, {kCut, kClasses}}) {
      const View g = put({kSamples, static_cast<std::int64_t>(end - begin)},
                         products_of(data.x, data.w, begin, end));
      grid::margin_softmax_gradient(grid_, c.spec, of_x, of_w.slice(begin, end), labels,
                                    static_cast<std::int64_t>(begin), targets, merged, seed, g);
      add_rows(dx, read(g), data.w, begin, end, false);
      add_rows(dw, read(g), data.x, begin, end, true);
    }
    const View of_dx = put({kSamples, kColumns}, flat(dx)),
               of_dw = put({std::int64_t{kClasses}, kColumns}, flat(dw));
    grid::project_rows(grid_, x, of_x, of_dx);
    grid::project_rows(grid_, w, of_w, of_dw);
    const auto wanted = reference::margin_softmax(c.spec, data.x, data.w, data.labels, 0.25);
    const auto numbers = read(merged);
    for (std::size_t n = 0; n < data.x.size(); ++n) {
      EXPECT_NEAR(static_cast<double>(numbers[3 * n + 2]), wanted.losses[n],
                  2e-5 * (1 + wanted.losses[n]));
    }
    EXPECT_LT(error_of(of_dx, flat_doubles(wanted.dx)), 2e-5);
    EXPECT_LT(error_of(of_dw, flat_doubles(wanted.dw)), 2e-5);
    const MarginData some{{data.x.begin() + 1, data.x.begin() + 4},
                          data.w,
                          {data.labels.begin() + 1, data.labels.begin() + 4}};
    const auto counted = reference::margin_softmax(c.spec, some.x, some.w, some.labels, 1);
    const MarginData of_rank{{data.x.begin(), data.x.begin() + 4},
                             data.w,
                             {data.labels.begin(), data.labels.begin() + 4}};
    const auto owned = reference::margin_softmax(c.spec, of_rank.x, of_rank.w, of_rank.labels, 1);
    EXPECT_NEAR(static_cast<double>(read(angles)[0]), 0.5 + owned.own_angles, 5e-5);
    EXPECT_EQ(read(angles)[1], 4.5F);
    EXPECT_NEAR(static_cast<double>(read(angles)[2]), 0.5 + counted.other_angles, 5e-5);
    EXPECT_EQ(read(angles)[3], 3.5F);
    EXPECT_EQ(read<std::int32_t>(right)[0], 2 + counted.right);
    EXPECT_EQ(read<std::int32_t>(right)[1], 2 + counted.undirected);
  }
}

// A part without classes changes nothing.
TEST_P(Grid, MarginSoftmaxOfNoClass) {
  const View none = put<float>({1}, {0});
  const View part = blank({2, 3});
  const View products(none.data(), {2, 0}), w_inverse(none.data(), {0});
  grid::margin_softmax_part(grid_, {}, products, put<float>({2}, {1, 1}), w_inverse,
                            put<std::int32_t>({2}, {0, 5}), 5, put<float>({2, 2}, {1, 1, 1, 1}),
                            false, part);
  const auto numbers = read(part);
  for (int n = 0; n < 2; ++n) {
    EXPECT_TRUE(std::isinf(numbers[3 * n]) && std::isinf(numbers[3 * n + 2]));
    EXPECT_EQ(numbers[3 * n + 1], 0);
  }
}

}  // namespace
}  // namespace ringlet::test
