// Rows in other benchmarks' columns: what stands where.
#include "bench/all_reduce/foreign_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace ringlet::bench {
namespace {

/// Whether the text has all of these, each in its own lines.
bool has_all(const std::string& text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

Measurement row_in(bool in_place, std::int64_t bytes, double median_us) {
  Measurement row;
  row.strategy = "ring";
  row.ranks = 4;
  row.bytes = bytes;
  row.count = bytes / 4;
  row.in_place = in_place;
  row.iterations = 20;
  row.median_us = row.mean_us = median_us;
  return row;
}

TEST(NcclText, PutsBothPlacesOfASizeIntoOneRow) {
  std::vector<Measurement> rows{row_in(false, 1024, 2), row_in(false, 4096, 123.456),
                                row_in(true, 1024, 1), row_in(true, 4096, 12345.6)};
  const std::string text = nccl_text(rows, {.step = "4(factor)"});
  EXPECT_TRUE(has_all(
      text,
      {"\n        1024           256     float     sum      -1     2.00    0.51    0.77      0"
       "     1.00    1.02    1.54      0\n",
       "\n        4096          1024     float     sum      -1    123.5    0.03    0.05      0"
       "    12346    0.00    0.00      0\n",
       "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.588566\n#\n"}))
      << text;
}

TEST(NcclText, TellsTheStepOfRowsThatWereReadByThem) {
  const auto step = [](std::initializer_list<std::int64_t> sizes) {
    std::vector<Measurement> rows;
    for (const std::int64_t bytes : sizes) rows.push_back(row_in(true, bytes, 1));
    const std::string text = nccl_text(rows, {});
    const std::size_t at = text.find("step: ") + 6;
    return text.substr(at, text.find(')', at) + 1 - at);
  };
  EXPECT_EQ(step({1024, 4096, 16384}), "4(factor)");
  EXPECT_EQ(step({1024, 2048, 3072}), "1024(bytes)");
  EXPECT_EQ(step({1024, 4096, 4100}), "0(bytes)");
  EXPECT_EQ(step({1024, 1028}), "4(bytes)");
  EXPECT_EQ(step({1024}), "1(factor)");
}

TEST(NcclText, SaysWhatIsMissingWrongOrDisturbed) {
  Measurement row = row_in(true, 1024, 1);
  row.wrong = 3;
  row.counts = false;
  row.why_not = "a rank waited";
  row.type = "bf16";
  row.op = "mean";
  const std::string text = nccl_text({row}, {});
  EXPECT_TRUE(has_all(text, {"  bfloat16     avg  ", "N/A     N/A     N/A    N/A     1.00    1.02",
                             "      3\n# 1024 bytes in place does not count: a rank waited\n",
                             "# Out of bounds values : 3 FAILED\n"}))
      << text;
  row.wrong = 0;
  row.hashes = {"1", "2", "1", "1"};
  EXPECT_TRUE(has_all(nccl_text({row}, {}), {"# Out of bounds values : 1 FAILED\n"}));
}

std::size_t tables_in(const std::string& text, const std::string& heading) {
  std::size_t count = 0;
  for (auto at = text.find(heading); at != text.npos; at = text.find(heading, at + 1)) ++count;
  return count;
}

TEST(ForeignText, HasATableOfEachMachineAndOfWhatWasMeasuredTwice) {
  std::vector<Measurement> rows{row_in(true, 1024, 1), row_in(true, 1024, 2), row_in(true, 4096, 3),
                                row_in(true, 1024, 4)};
  rows[3].machine = "An abacus";
  const std::string nccl = nccl_text(rows, {});
  EXPECT_EQ(tables_in(nccl, "# Using devices"), 3U) << nccl;
  // busbw of 1024 bytes in 1 us and of 4096 in 3, together; of 1024 in 2; and in 4.
  EXPECT_TRUE(has_all(nccl, {"bandwidth    : 1.792\n", "bandwidth    : 0.768\n",
                             "bandwidth    : 0.384\n", "over local, on An abacus;"}))
      << nccl;
  EXPECT_EQ(tables_in(osu_text(rows, false), "# Size"), 3U);
}

TEST(OsuText, TakesEachRanksMean) {
  Measurement row = row_in(false, 4096, 9);
  row.by_rank = {{1, 2, 0.5}, {1, 4, 0.5}, {1, 6, 0}, {1, 8, 0}};
  EXPECT_TRUE(
      has_all(osu_text({row}, true),
              {"\n4096                    5.00              2.00              8.00          "
               "20\n"}))
      << osu_text({row}, true);
  row.by_rank.clear();
  row.collective = "all-gather";
  EXPECT_TRUE(has_all(osu_text({row}, false),
                      {"# OSU MPI Allgather Latency Test", "\n1024                    9.00\n"}));
}

}  // namespace
}  // namespace ringlet::bench
