#include "comm/collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8};
constexpr double kTimeout = 10;  // seconds: ranks that miss each other shall be seen soon

TEST(Broadcast, GivesTheRootsDataToAllFromEachRoot) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      group.transport(rank).set_timeout(kTimeout);
      for (int root = 0; root < size; ++root) {
        for (const std::size_t count : {0, 1, 1000}) {
          std::vector<float> data(count, static_cast<float>(rank * 10 + root));
          broadcast(group.transport(rank), device->communication(), root, view_of(data));
          EXPECT_EQ(data, std::vector<float>(count, static_cast<float>(root * 11)));
        }
      }
    });
    ASSERT_FALSE(HasFailure()) << "with " << size << " ranks";
  }
}

TEST(Broadcast, SendsTheDataOnceToEachOtherRank) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      std::vector<float> data(25);
      broadcast(group.transport(rank), device->communication(), size - 1, view_of(data));
    });
    std::int64_t sent = 0;
    for (int rank = 0; rank < size; ++rank) sent += group.transport(rank).bytes_sent();
    EXPECT_EQ(sent, (size - 1) * 100);
  }
}

TEST(Broadcast, RefusesARootOutsideTheWorld) {
  LocalGroup group(1);
  const auto device = in_place_device();
  for (const int root : {-1, 1}) {
    EXPECT_THROW(
        broadcast(group.transport(0), device->communication(), root, View(nullptr, {0}, DType::u8)),
        ContractError);
  }
}

TEST(AllGather, PutsThePartsInTheOrderOfRanks) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      std::vector<float> mine{static_cast<float>(rank), 0.5F};
      std::vector<float> all(2 * static_cast<std::size_t>(size), -1.0F);
      all_gather(group.transport(rank), device->communication(), view_of(mine), view_of(all));
      for (int other = 0; other < size; ++other) {
        EXPECT_EQ(all[2 * static_cast<std::size_t>(other)], static_cast<float>(other));
        EXPECT_EQ(all[2 * static_cast<std::size_t>(other) + 1], 0.5F);
      }
    });
  }
}

TEST(Barrier, HoldsEverybodyUntilTheLastHasCome) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    std::atomic<int> came{0};
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      std::mt19937 generator(static_cast<unsigned>(rank));
      std::uniform_int_distribution<int> delay(0, 300);
      for (int round = 1; round <= 50; ++round) {
        std::this_thread::sleep_for(std::chrono::microseconds(delay(generator)));
        ++came;
        barrier(group.transport(rank), device->communication());
        EXPECT_GE(came.load(), round * size);
        barrier(group.transport(rank), device->communication());
      }
    });
  }
}

/// Sends, instead of empty messages, the ranks that it has heard of, as bits.
class GossipTransport final : public Transport {
 public:
  explicit GossipTransport(Transport& inner)
      : Transport(inner.world()), inner_(inner), heard_of_(1U << inner.rank()) {}

  unsigned heard_of() const { return heard_of_; }

  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return inner_.root_cause(); }
  FlightRecorder& recorder() override { return inner_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return inner_.look_at(other); }

 protected:
  void do_exchange(Stream& stream, int to, ConstView, int from, View, Combine) override {
    const unsigned told = heard_of_;
    unsigned arriving = 0;
    inner_.exchange(stream, to, ConstView(&told, {sizeof told}, DType::u8), from,
                    View(&arriving, {sizeof arriving}, DType::u8));
    heard_of_ |= arriving;
  }

 private:
  Transport& inner_;
  unsigned heard_of_;
};

TEST(Barrier, LetsNobodyThroughWhoHasNotHeardOfEverybody) {
  for (const int size : kSizes) {
    LocalGroup group(size);
    run_ranks(size, [&](int rank) {
      const auto device = in_place_device();
      GossipTransport transport(group.transport(rank));
      barrier(transport, device->communication());
      EXPECT_EQ(transport.heard_of(), (1U << size) - 1) << "rank " << rank << " of " << size;
    });
  }
}

}  // namespace
}  // namespace ringlet::comm
