// What a rank sends for a loss with a margin: by the formula, and independent of the classes.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/layers/class_centres.h"
#include "nn/layers/stateless.h"
#include "nn/ops/margin_softmax.h"
#include "nn/parameters.h"
#include "tests/comm/processes.h"
#include "tests/support/tensors.h"
#include "train/sync/data_axis.h"

namespace ringlet::train {
namespace {

struct Sizes {
  std::int64_t samples;  // of a rank
  std::int64_t columns;
  std::int64_t classes = 70;
};

/// Bytes that this rank sends in forward and backward.
std::int64_t sent(comm::Transport& transport, const Sizes& sizes) {
  const auto device = comm::in_place_device();
  comm::Communicator communicator(transport);
  const nn::AxisPosition position{.rank = transport.rank(), .ranks = transport.size()};
  DataAxis axis(*device, communicator, position);
  nn::ClassCentres model(std::make_unique<nn::Flatten>(), sizes.classes, sizes.columns);
  nn::Registry registry = nn::register_model(model);
  registry.place(position);
  const nn::BatchSpec batch_of{
      .tensors = {{nn::kImages, {sizes.samples, sizes.columns, 1, 1}},
                  {nn::kTargets, {sizes.samples}, Layout::nchw, DType::i32}}};
  const auto loss = [&](nn::Tape& tape, const nn::Batch& batch) {
    return nn::margin_softmax(model.forward(tape, batch[nn::kImages]), model.centres(),
                              batch[nn::kTargets], {});
  };
  const nn::Plan plan = nn::plan_training(registry, batch_of, loss);
  nn::Parameters parameters(*device, registry, plan);
  parameters.initialize(1);
  Arena arena(*device, 16 << 20);
  nn::Tape tape(*device, arena, registry.parameters);
  const Tensor images(*device, {sizes.samples, sizes.columns, 1, 1}),
      labels(*device, {sizes.samples}, DType::i32), seed(*device, {1});
  const auto x = test::random_floats(images.shape().count(), 1);
  copy_from_host(device->compute(), x.data(), images);
  fill(device->compute(), 1, seed);
  const std::vector<std::int32_t> zeros(static_cast<std::size_t>(sizes.samples));
  copy_from_host(device->compute(), zeros.data(), labels);
  axis.begin(std::vector(static_cast<std::size_t>(position.ranks), sizes.samples), sizes.samples);
  tape.begin({.axis = &axis});
  nn::Batch batch;
  batch.add(nn::kImages, tape.input(images));
  batch.add(nn::kTargets, tape.constant(labels));
  const std::int64_t before = transport.bytes_sent();
  tape.backward(loss(tape, batch), seed);
  return transport.bytes_sent() - before;
}

/// 2 (W - 1) / W N d 4 of embeddings and 2 (W - 1) / W N 12 of sums; of labels and losses' seeds 4
/// bytes each, once. `padded`: rows of a rank in the reduce-scatter.
std::int64_t formula(std::int64_t ranks, const Sizes& sizes, std::int64_t padded) {
  const std::int64_t of_row = 4 * sizes.columns;
  return (ranks - 1) * (sizes.samples * (of_row + 2 * 12 + 4) + padded * of_row + 4);
}

TEST(MarginExchange, SendsWhatTheFormulaSays) {
  struct Case {
    Sizes sizes;
    std::int64_t padded;
  };
  const Case cases[] = {{{.samples = 6, .columns = 64}, 6},
                        {{.samples = 6, .columns = 64, .classes = 9000}, 6},
                        {{.samples = 5, .columns = 48}, 6},
                        {{.samples = 70, .columns = 33}, 96}};
  for (const int ranks : {2, 3, 4}) {
    comm::LocalGroup threads(ranks);
    comm::Processes processes({ranks, 1});
    for (const auto& [sizes, padded] : cases) {
      comm::run_ranks(ranks, [&, &sizes = sizes, &padded = padded](int rank) {
        const std::int64_t wanted = formula(ranks, sizes, padded);
        EXPECT_EQ(sent(threads.transport(rank), sizes), wanted) << ranks << " threads";
        EXPECT_EQ(sent(processes.transport(rank), sizes), wanted) << ranks << " processes";
      });
    }
  }
}

TEST(MarginExchange, APartForTheSumIsAMultipleOfACacheLine) {
  for (std::int64_t columns = 1; columns <= 130; ++columns) {
    const std::int64_t rows = nn::Axis::rows_of_part(7, columns);
    EXPECT_GE(rows, 7);
    EXPECT_LT(rows, 7 + 32);
    EXPECT_EQ(rows * columns % nn::Axis::kGrain, 0);
  }
  EXPECT_EQ(nn::Axis::rows_of_part(7, 512), 7);
}

}  // namespace
}  // namespace ringlet::train
