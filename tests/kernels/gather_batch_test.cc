#include "kernels/gather_batch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/loader.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/gather_cases.h"
#include "tests/kernels/harness.h"

namespace ringlet::test {
namespace {

class GatherBatch : public OperationTest {
 protected:
  struct Result {
    Tensor y;
    Tensor labels;
  };

  Result gather(Device& device, const GatherCase& c, const BatchPosition& position,
                std::int64_t n) const {
    Result result{output(device, c.image.with_batch(n)),
                  upload(device, {n}, std::vector<std::int32_t>(static_cast<std::size_t>(n), -7))};
    const Tensor images = upload(device, c.shape(), c.pixels);
    const Tensor at(device, batch_position_shape(), DType::u8);
    copy_from_host(device.compute(), &position, at);
    gather_batch(device.compute(), c.spec, images, upload(device, {kGatherSize}, c.labels), at,
                 result.y, result.labels);
    return result;
  }
};

TEST_P(GatherBatch, HasTheBitsOfTheLoader) {
  for (const GatherCase& c : gather_cases()) {
    for (const data::BatchRequest& request : gather_requests()) {
      SCOPED_TRACE(c.image.to_string() + " from " + std::to_string(request.begin));
      const GatheredBatch expected = batch_of_the_loader(c, request);
      const BatchPosition position{request.epoch, request.begin};
      const Tensor y =
          run([&](Device& device) { return gather(device, c, position, request.size()).y; });
      EXPECT_EQ(read(y), expected.images);
      expect_padding_zero(y);
      const Tensor labels =
          run([&](Device& device) { return gather(device, c, position, request.size()).labels; });
      EXPECT_EQ(read<std::int32_t>(labels), expected.labels);
    }
  }
}

TEST_P(GatherBatch, RefusesPositionsBeyondTheDataSet) {
  const GatherCase c = gather_cases().front();
  for (const std::int64_t first : {std::int64_t{-1}, kGatherSize - 1}) {
    if (!on_cuda()) {
      EXPECT_THROW((void)gather(*devices_[0], c, {0, first}, 2), ContractError);
      continue;
    }
    const Result result = gather(*devices_[0], c, {0, first}, 2);  // cannot throw
    const std::size_t outside = first < 0 ? 0 : 1;
    EXPECT_EQ(read<std::int32_t>(result.labels)[outside], -1);
    EXPECT_TRUE(std::isnan(read(result.y)[outside * static_cast<std::size_t>(c.image.count())]));
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, GatherBatch, all_setups(), name_of);

}  // namespace
}  // namespace ringlet::test
