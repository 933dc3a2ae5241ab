#include "nn/row_major.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "nn/parameter.h"
#include "tests/support/tensors.h"

namespace ringlet::nn {
namespace {

TEST(RowMajor, IsHowFilesHaveWhatLiesInNhwc) {
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  std::vector<float> rows(2 * 3 * 4);
  std::iota(rows.begin(), rows.end(), 0.0F);
  const Tensor memory(*device, {24});
  const View filters(memory.view().data(), {2, 3, 1, 4}, DType::f32, Layout::nhwc);
  from_rows(device->compute(), rows.data(), filters);
  EXPECT_EQ(test::read(memory),
            (std::vector<float>{0,  4,  8,  1,  5,  9,  2,  6,  10, 3,  7,  11,
                                12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23}));
  EXPECT_EQ(to_rows(device->compute(), filters), rows);
  const View flat(memory.view().data(), {2, 3, 1, 4});
  from_rows(device->compute(), rows.data(), flat);
  EXPECT_EQ(test::read(memory), rows);
  EXPECT_EQ(to_rows(device->compute(), flat), rows);
}

TEST(Parameter, OfAConvolutionLiesAsImagesDoInNhwc) {
  Parameter filters({4, 3, 2, 2}, Initializer::zeros());
  EXPECT_EQ(filters.layout_beside(Layout::nhwc), Layout::nchw) << "of some other layer";
  filters.is_filter = true;
  EXPECT_EQ(filters.layout_beside(Layout::nhwc), Layout::nhwc);
  EXPECT_EQ(filters.layout_beside(Layout::nchw), Layout::nchw);
  EXPECT_EQ(filters.layout_beside(Layout::lanes), Layout::nchw);
  Parameter pointwise({4, 3, 1, 1}, Initializer::zeros());
  pointwise.is_filter = true;
  EXPECT_EQ(pointwise.layout_beside(Layout::nhwc), Layout::nchw) << "alike in both";
}

}  // namespace
}  // namespace ringlet::nn
