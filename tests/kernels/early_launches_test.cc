// Whether what is launched early (kernels/cuda/cuda_grid.cuh) waits for what it reads: a producer
// whose blocks store late, and behind it a grid that finds all of it written, in each of many
// rounds. In a stream and in a graph; behind the producer itself, and behind what may stand in
// between. On a GPU a race shows in some of the rounds, if at all. On the stand-in there are few
// and small ones: there the compiled kernels' accesses are checked, and the graphs' edges.
#include "tests/kernels/early_launches.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/branch.h"
#include "kernels/capture.h"
#include "kernels/conv2d.h"
#include "kernels/cuda_devices.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/linear.h"
#include "tests/support/tensors.h"

namespace ringlet::test {
namespace {

#ifdef RINGLET_STAND_IN
constexpr int kRounds = 8, kTurns = 3;
constexpr std::int64_t kBlocks = 16;
#else
// 4096 blocks are four waves of them. A step of the producer's is six dependent instructions: with
// all 64 warps of a multiprocessor at it, 1400 take some 100 us at 1.755 GHz.
constexpr int kRounds = 1000, kTurns = 1400;
constexpr std::int64_t kBlocks = 4096;
#endif
constexpr std::int64_t kThreads = 256;
// As an image: 64 channels of a sample, and a pixel's in a row.
constexpr std::int64_t kChannels = 64, kPixels = kBlocks * kThreads / kChannels;

class CudaEarlyLaunches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
    device_ = open_device({DeviceKind::cuda, 0});
    most_ = stream().multiprocessors();
    if (!stream().launches_early(1)) {
      GTEST_SKIP() << "nothing is launched early here: the GPU or its code is older than 9.0, or "
                      "RINGLET_EARLY_LAUNCHES=off";
    }
    round_ = Tensor(*device_, {1});
    values_ = Tensor(*device_, {1, kChannels, kPixels, 1});
    copies_ = Tensor(*device_, {1, kChannels, kPixels, 1});
    counts_ = Tensor(*device_, {2, kThreads * most_});
    identity_ = upload(*device_, {kChannels, kChannels}, identity());
    fill(stream(), 0, round_);
    fill(stream(), 0, values_);
    fill(stream(), 0, copies_);
    fill(stream(), 0, counts_);
  }

  CudaStream& stream() { return static_cast<CudaStream&>(device_->compute()); }
  void produce() { write_late(stream(), round_, kTurns, values_); }
  void consume(const Tensor& values, std::int64_t blocks) {
    read_all(stream(), round_, values, blocks, counts_);
  }

  /// `between()` enqueues what comes behind the producer and returns what the reader reads.
  template <class Between>
  void expect_all_read(Between between) {
    const auto round = [&](std::int64_t blocks) {
      next_round(stream(), round_);
      produce();
      consume(between(), blocks);
    };
    round(1);  // plans are chosen, and memory grows
    expect_counts(1, "before all");
    std::int64_t turns = 0;
    for (int i = 0; i < kRounds; ++i) {
      const std::int64_t blocks = 1 + i % most_;
      round(blocks);
      turns += blocks;
    }
    expect_counts(turns, "in a stream");
    for (const std::int64_t blocks : {std::int64_t{1}, std::int64_t{2}, most_ / 2, most_}) {
      expect_all_read_in_graph([&] { round(blocks); }, blocks);
    }
  }

  template <class Round>
  void expect_all_read_in_graph(Round round, std::int64_t blocks) {
    const auto graph = capture(stream(), round);
    for (int i = 0; i < kRounds / 4; ++i) stream().launch(*graph);
    expect_counts(kRounds / 4 * blocks, "in a graph");
  }

  /// What was counted since the last call: of so many blocks, in all rounds.
  void expect_counts(std::int64_t blocks, const std::string& where) {
    const std::vector<float> found = test::read<float>(stream(), counts_);
    const auto half = found.begin() + std::ssize(found) / 2;
    EXPECT_EQ(std::accumulate(found.begin(), half, 0.0), 0) << "were read too early, " << where;
    EXPECT_EQ(std::accumulate(half, found.end(), 0.0), static_cast<double>(blocks * kThreads));
    fill(stream(), 0, counts_);
  }

  static std::vector<float> identity() {
    std::vector<float> matrix(kChannels * kChannels);
    for (std::size_t i = 0; i < kChannels; ++i) matrix[i * kChannels + i] = 1;
    return matrix;
  }

  std::unique_ptr<Device> device_;
  std::int64_t most_ = 0;  // blocks of a grid that comes early
  Tensor round_, values_, copies_, counts_, identity_;
};

TEST_F(CudaEarlyLaunches, WaitForTheGridInFront) {
  expect_all_read([&]() -> const Tensor& { return values_; });
}

// Two that come early in a row: the second may begin while the first still waits.
TEST_F(CudaEarlyLaunches, WaitForTheGridBeforeTheLast) {
  const Tensor other(*device_, {1});
  fill(stream(), 0, other);
  expect_all_read([&]() -> const Tensor& {
    next_round(stream(), other);
    return values_;
  });
}

TEST_F(CudaEarlyLaunches, WaitForACopy) {
  expect_all_read([&]() -> const Tensor& {
    copy(stream(), values_, copies_);
    return copies_;
  });
}

TEST_F(CudaEarlyLaunches, WaitForCublasLt) {
  const Shape rows{kPixels, kChannels};
  expect_all_read([&]() -> const Tensor& {
    linear_forward(stream(), values_.view().reshaped(rows), identity_, {}, Activation::none,
                   copies_.view().reshaped(rows));
    return copies_;
  });
}

TEST_F(CudaEarlyLaunches, WaitForCudnn) {
  const View filter = identity_.view().reshaped({kChannels, kChannels, 1, 1});
  expect_all_read([&]() -> const Tensor& {
    conv2d_forward(stream(), {}, values_, filter, {}, Activation::none, copies_);
    return copies_;
  });
}

TEST_F(CudaEarlyLaunches, WaitForABranchThatJoins) {
  const Tensor beside(*device_, values_.shape());
  const auto round = [&](std::int64_t blocks) {
    next_round(stream(), round_);
    {
      const Branch branch(stream(), 1e9);
      produce();
    }
    write_late(stream(), round_, 0, beside);
    Branch::join(stream());
    consume(values_, blocks);
    consume(beside, blocks);
  };
  round(1);
  expect_counts(2, "before all");
  for (const std::int64_t blocks : {std::int64_t{1}, std::int64_t{2}, most_ / 2, most_}) {
    expect_all_read_in_graph([&] { round(blocks); }, 2 * blocks);
  }
}

}  // namespace
}  // namespace ringlet::test
