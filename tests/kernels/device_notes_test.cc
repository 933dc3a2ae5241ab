// What a GPU's stream notes of itself, where it is asked to: the graphs that it captures and the
// engines that cuDNN chose. On the stand-in, whose engines and launches are known.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "base/switches.h"
#include "kernels/branch.h"
#include "kernels/capture.h"
#include "kernels/conv2d.h"
#include "kernels/device.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "kernels/memory.h"

namespace ringlet {
namespace {

using Notes = std::vector<std::string>;

/// A device whose compute stream notes what it does.
class CudaNotes : public ::testing::Test {
 protected:
  void open(const DeviceOptions& options = {}) {
    device_ = open_device({DeviceKind::cuda, 0}, options);
    stream().set_notes(&notes_);
  }
  Stream& stream() { return device_->compute(); }

  /// What is noted of a graph that holds what `enqueue` does.
  template <class Enqueue>
  Notes notes_of_graph(Enqueue enqueue) {
    notes_.clear();
    stream().synchronize();
    const std::unique_ptr<Graph> graph = capture(stream(), enqueue);
    return notes_;
  }
  /// What is noted of a convolution with eight channels of output.
  Notes notes_of_convolution(const Shape& shape) {
    notes_.clear();
    const Tensor x(*device_, shape), w(*device_, {8, shape[1], 3, 3});
    const Tensor y(*device_, {shape[0], 8, shape[2] - 2, shape[3] - 2});
    conv2d_forward(stream(), {}, x, w, {}, Activation::none, y);
    stream().synchronize();
    return notes_;
  }

  std::unique_ptr<Device> device_;
  Notes notes_;
};

constexpr std::int64_t kSmall = 4, kLarge = 1 << 20;  // numbers: of one block, of many

TEST_F(CudaNotes, HaveTheNodesAndEdgesOfAGraph) {
  open();
  const Tensor small(*device_, {kSmall}), large(*device_, {kLarge});
  fill(stream(), 0, small);  // before the graph
  EXPECT_EQ(notes_of_graph([&] {
              for (int i = 0; i < 3; ++i) fill(stream(), 1, small);
            }),
            Notes{"a graph of 3 nodes and 2 edges, 2 of them early"});
  EXPECT_EQ(notes_of_graph([&] {
              fill(stream(), 1, small);
              fill(stream(), 1, large);  // too many blocks to come early
              fill(stream(), 1, small);
            }),
            Notes{"a graph of 3 nodes and 2 edges, 1 of them early"});
}

TEST_F(CudaNotes, CountNoEdgeBehindACopyAsEarly) {
  open();
  const Tensor from(*device_, {kSmall}), to(*device_, {kSmall});
  EXPECT_EQ(notes_of_graph([&] {
              fill(stream(), 1, from);
              copy(stream(), from, to);
              fill(stream(), 2, from);
              fill(stream(), 3, from);
            }),
            Notes{"a graph of 4 nodes and 3 edges, 1 of them early"});
}

TEST_F(CudaNotes, HaveBothEdgesOfABranch) {
  open();
  const Tensor x(*device_, {kSmall}), y(*device_, {kSmall});
  EXPECT_EQ(notes_of_graph([&] {
              fill(stream(), 1, x);
              {
                constexpr double kMuch = 1e12;
                const Branch branch(stream(), kMuch);
                fill(stream(), 2, x);
              }
              fill(stream(), 3, y);
              Branch::join(stream());
              fill(stream(), 4, x);
            }),
            Notes{"a graph of 4 nodes and 4 edges, 4 of them early"});
}

TEST_F(CudaNotes, HaveNoEarlyEdgeWhereThatIsSwitchedOff) {
  setenv(kEarlyLaunches, "off", 1);  // NOLINT(concurrency-mt-unsafe)
  open();
  unsetenv(kEarlyLaunches);  // NOLINT(concurrency-mt-unsafe)
  const Tensor x(*device_, {kSmall});
  EXPECT_EQ(notes_of_graph([&] {
              fill(stream(), 1, x);
              fill(stream(), 2, x);
            }),
            Notes{"a graph of 2 nodes and 1 edges, 0 of them early"});
}

TEST_F(CudaNotes, HaveALineForEachEngineThatWasChosen) {
  open();
  const std::string asked =
      "conv2d_forward of x [2, 8, 5, 5], w [8, 8, 3, 3], stride 1x1, padding 0x0, dilation 1x1, "
      "groups 1, beta 0.000000: ";
  EXPECT_EQ(notes_of_convolution({2, 8, 5, 5}),
            Notes{asked + "an engine, 0 bytes of scratch memory"});
  EXPECT_EQ(notes_of_convolution({2, 8, 5, 5}), Notes{});  // by the same plan
  EXPECT_EQ(notes_of_convolution({2, 8, 6, 5}).size(), 1U);
  open({.tf32 = true});
  EXPECT_EQ(notes_of_convolution({2, 8, 5, 5}),
            Notes{asked + "an engine, tensor cores, 0 bytes of scratch memory"});
}

TEST_F(CudaNotes, AreSilentOfWhatIsTriedForALine) {
  open({.autotune = true});
  const Notes notes = notes_of_convolution({2, 8, 5, 5});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(notes[0].starts_with("conv2d_forward of ")) << notes[0];
}

TEST_F(CudaNotes, AreNotWrittenWhereNobodyAsks) {
  open();
  stream().set_notes(nullptr);
  EXPECT_EQ(notes_of_convolution({2, 8, 5, 5}), Notes{});
  const Tensor x(*device_, {kSmall});
  EXPECT_EQ(notes_of_graph([&] { fill(stream(), 1, x); }), Notes{});
}

}  // namespace
}  // namespace ringlet
