// The loader takes no memory after construction. Every `new` of this executable is counted.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "data/synthetic.h"
#include "tests/support/counting_new.h"

namespace ringlet::data {
namespace {

TEST(LoaderAllocation, NoneAfterConstruction) {
  const Splits splits = make_synthetic({.train = 1000, .test = 1});
  for (const int depth : {0, 2, 3}) {
    for (const BatchLayout layout : {BatchLayout::nchw, BatchLayout::lanes16}) {
      Loader loader(splits.train, Sampler(1000, 1),
                    [](std::int64_t k) {
                      return std::optional(BatchRequest{k, 0, 100 + k % 20});
                    },
                    {layout, 0, 1, 120, depth});
      loader.next();  // the thread has begun
      const std::int64_t before = test::operator_new_calls();
      for (int i = 0; i < 50; ++i) loader.next();
      EXPECT_EQ(test::operator_new_calls(), before);
    }
  }
}

TEST(LoaderAllocation, TheCounterCounts) {
  const std::int64_t before = test::operator_new_calls();
  const auto kept = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(test::operator_new_calls(), before + 2);
}

}  // namespace
}  // namespace ringlet::data
