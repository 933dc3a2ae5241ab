// The loader takes no memory after construction. Every `new` of this executable is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "data/loader.h"
#include "data/synthetic.h"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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
      const std::int64_t before = allocations;
      for (int i = 0; i < 50; ++i) loader.next();
      EXPECT_EQ(allocations, before);
    }
  }
}

TEST(LoaderAllocation, TheCounterCounts) {
  const std::int64_t before = allocations;
  const auto kept = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocations, before + 2);
}

}  // namespace
}  // namespace ringlet::data
