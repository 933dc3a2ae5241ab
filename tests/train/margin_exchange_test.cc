// What a rank sends for a loss with a margin: by the formula, and independent of the classes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/layers/class_centres.h"
#include "nn/layers/stateless.h"
#include "nn/ops/margin_softmax.h"
#include "nn/parameters.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/support/testdata.h"
#include "train/sync/data_axis.h"

namespace ringlet::train {
namespace {

struct Sizes {
  std::int64_t samples = 0;  // of a rank
  std::int64_t columns = 0;
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
    std::int64_t padded = 0;
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

/// The table "on paper" of docs/faces.md.
TEST(MarginExchange, TheTableOnPaperIsTheFormulas) {
  constexpr std::int64_t kRanks = 64, kClasses = 10'000'000, kAll = 8192, kSize = 512;
  constexpr std::int64_t kOfRank = kAll / kRanks, kRows = kClasses / kRanks;
  constexpr double kMega = 1e6, kGiga = 1e9;
  const std::string page = testing::read_file(testing::checkout("docs/faces.md"));
  const auto expect_row = [&](const std::string& begin, const std::string& end) {
    const auto at = page.find("\n| " + begin + " |");
    ASSERT_NE(at, std::string::npos) << begin;
    const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(line.ends_with("| " + end + " |")) << line << "\nwants " << end;
  };
  const auto both = [](const char* form, auto all, auto tenth) {
    return fmt::format(fmt::runtime(form), all) + " | " + fmt::format(fmt::runtime(form), tenth);
  };
  const auto with_commas = [](double number) {
    std::string text = fmt::format("{:.0f}", number);
    for (auto at = std::ssize(text) - 3; at > 0; at -= 3) {
      text.insert(static_cast<std::size_t>(at), ",");
    }
    return text;
  };
  const auto sent = [&](std::int64_t columns) {  // without the seeds of losses, 4 bytes a rank
    const auto bytes = formula(kRanks, {.samples = kOfRank, .columns = columns}, kOfRank);
    return static_cast<double>(bytes - (kRanks - 1) * 4);
  };
  const double of_sums = sent(0), of_embeddings = sent(kSize) - of_sums;
  const auto at_rows = [&](double of_row) {
    return std::pair(of_row * kRows, of_row * kRows / 10);
  };
  expect_row("rows | R", with_commas(kRows) + " | " + with_commas(kRows / 10.0));
  expect_row("centres and momentum | 8 · C/W · d",
             both("{:.0f} MB", 8.0 * kRows * kSize / kMega, 8.0 * kRows * kSize / kMega));
  const auto [gradient, of_tenth] = at_rows(4.0 * kSize / kMega);
  expect_row("gradient of rows | 4 · R · d", both("{:.0f} MB", gradient, of_tenth));
  const auto [products, some] = at_rows(4.0 * kAll / kMega);
  expect_row("products, if all were kept | 4 · N · R",
             with_commas(products) + " MB | " + with_commas(some) + " MB");
  const double block = 4.0 * kOfRank * 4096 / kMega;
  expect_row("products at a time, beyond 256 MiB | 4 · N/W · 4,096",
             both("{:.1f} MB", block, block));
  const auto [flops, few] = at_rows(6.0 * kAll * kSize / kGiga);
  expect_row("arithmetic | 6 · N · R · d",
             with_commas(flops) + " GFLOP | " + with_commas(few) + " GFLOP");
  expect_row("sent: embeddings and their gradient | 2 · (W−1)/W · N · d · 4",
             both("{:.1f} MB", of_embeddings / kMega, of_embeddings / kMega));
  expect_row("sent: sums and labels | (W−1)/W · N · 28",
             both("{:.0f} KB", of_sums / 1000, of_sums / 1000));
  const auto all_reduced = [](double numbers) {
    return 8 * numbers * (kRanks - 1) / kRanks / kMega;
  };
  expect_row("sent, if every rank had all centres | 2 · (W−1)/W · C · d · 4",
             with_commas(all_reduced(static_cast<double>(kClasses * kSize))) + " MB |");
  expect_row("beside it iresnet50: sent | 2 · (W−1)/W · 43,590,336 · 4",
             fmt::format("{:.0f} MB |", all_reduced(43'590'336)));
  expect_row("beside it iresnet50: arithmetic | 6 · 6.31 G · N/W",
             with_commas(6 * 6.31 * kOfRank) + " GFLOP |");
}

}  // namespace
}  // namespace ringlet::train
