#include "kernels/cuda/linear_matmul.h"

#include <gtest/gtest.h>

#include "tests/kernels/cases.h"
#include "tests/reference/linear.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

/// What cuBLASLt does with a Matmul: every matrix is column-major, with its rows as its leading
/// dimension.
void multiply(const Matmul& matmul) {
  const MatmulSize& size = matmul.size;
  const auto a = [&](std::int64_t row, std::int64_t k) {
    return static_cast<const float*>(
        matmul.a)[size.transpose_a ? k + row * size.a_rows() : row + k * size.a_rows()];
  };
  const auto b = [&](std::int64_t k, std::int64_t column) {
    return static_cast<const float*>(
        matmul.b)[size.transpose_b ? column + k * size.b_rows() : k + column * size.b_rows()];
  };
  for (std::int64_t column = 0; column < size.n; ++column) {
    for (std::int64_t row = 0; row < size.m; ++row) {
      float sum = 0;
      for (std::int64_t k = 0; k < size.k; ++k) sum += a(row, k) * b(k, column);
      static_cast<float*>(matmul.d)[row + column * size.m] = sum;
    }
  }
}

class LinearMatmul : public ::testing::TestWithParam<LinearCase> {
 protected:
  static constexpr std::int64_t kSamples = 7;
  const std::int64_t inputs_ = GetParam().inputs, outputs_ = GetParam().outputs;
  const reference::LinearSize size_{kSamples, inputs_, outputs_};
  const Shape x_shape_{kSamples, inputs_}, w_shape_{outputs_, inputs_},
      y_shape_{kSamples, outputs_};
  std::vector<float> x_ = random_floats(kSamples * inputs_, 1);
  std::vector<float> w_ = random_floats(outputs_ * inputs_, 2);
  std::vector<float> y_ = random_floats(kSamples * outputs_, 3);
};

TEST_P(LinearMatmul, Forward) {
  const auto expected = reference::linear_forward(size_, x_, w_);
  multiply(
      linear_forward_matmul({x_.data(), x_shape_}, {w_.data(), w_shape_}, {y_.data(), y_shape_}));
  EXPECT_EQ(y_, expected);
}

TEST_P(LinearMatmul, BackwardData) {
  const auto expected = reference::linear_backward_data(size_, w_, y_);
  multiply(linear_backward_data_matmul({w_.data(), w_shape_}, {y_.data(), y_shape_},
                                       {x_.data(), x_shape_}));
  EXPECT_EQ(x_, expected);
}

TEST_P(LinearMatmul, BackwardWeight) {
  const auto expected = reference::linear_backward_weight(size_, x_, y_);
  multiply(linear_backward_weight_matmul({x_.data(), x_shape_}, {y_.data(), y_shape_},
                                         {w_.data(), w_shape_}));
  EXPECT_EQ(w_, expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, LinearMatmul, ::testing::ValuesIn(linear_cases()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(LinearMatmul, HasMatricesOfTheSizesInMemory) {
  float unused = 0;
  const View x(&unused, {3, 5}), w(&unused, {2, 5}), y(&unused, {3, 2});
  const MatmulSize forward = linear_forward_matmul(x, w, y).size;
  EXPECT_EQ(forward.a_columns(), 2);  // w^T [5, 2], as it lies in memory
  EXPECT_EQ(forward.b_columns(), 3);  // x^T [5, 3]
  const MatmulSize weight = linear_backward_weight_matmul(x, y, w).size;
  EXPECT_EQ(weight.a_columns(), 3);  // x^T [5, 3]
  EXPECT_EQ(weight.b_columns(), 3);  // dy^T [2, 3]
}

}  // namespace
}  // namespace ringlet::test
