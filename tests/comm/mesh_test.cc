// Meshes: where a rank stands, sums along axes, collectives of two axes side by side over every
// transport, one abort for all, and errors that name the axis. Over NCCL's stand-in:
// nccl_transport_test.cc.
#include "comm/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/comm/processes.h"
#include "tests/support/files.h"

namespace ringlet::comm {
namespace {

constexpr int kRanks = 4;
const std::vector<MeshAxis> kAxes{{"stage", 2}, {"data", 2}};

/// Four ranks as a mesh, of one process or of several.
class Grid {
 public:
  /// No processes: threads of a LocalGroup.
  explicit Grid(const Split& split, const std::vector<MeshAxis>& axes = kAxes) {
    if (split.processes == 0) {
      threads_.emplace(kRanks);
    } else {
      processes_.emplace(split);
    }
    meshes_.resize(static_cast<std::size_t>(std::max(split.processes, 1)));
    run_ranks(static_cast<int>(meshes_.size()), [&](int process) {
      Group& group = threads_ ? static_cast<Group&>(*threads_) : processes_->group(process);
      meshes_[static_cast<std::size_t>(process)] = std::make_unique<MeshGroup>(group, axes);
    });
  }

  Group& group_of(int rank) {
    return threads_ ? static_cast<Group&>(*threads_) : processes_->group_of(rank);
  }
  MeshGroup& of(int rank) { return *meshes_[static_cast<std::size_t>(group_of(rank).process())]; }

 private:
  std::optional<LocalGroup> threads_;
  std::optional<Processes> processes_;
  std::vector<std::unique_ptr<MeshGroup>> meshes_;  // by process
};

constexpr Split kThreads{0, kRanks};

std::string name_of_grid(const Split& split) {
  return split.processes == 0 ? "threads" : identifier(name_of(split));
}

class Meshes : public ::testing::TestWithParam<Split> {
 protected:
  void SetUp() override { skip_without(GetParam().transport); }
};
INSTANTIATE_TEST_SUITE_P(Over, Meshes,
                         ::testing::Values(kThreads, Split{2, 2}, Split{4, 1},
                                           Split{2, 2, ProcessTransport::gloo},
                                           Split{4, 1, ProcessTransport::gloo},
                                           Split{4, 1, ProcessTransport::gloo, 2}),
                         [](const auto& test) { return name_of_grid(test.param); });

/// 2 to the power of each rank, of `ranks`: the sum says who has brought it.
float sum_of(const std::vector<int>& ranks) {
  float sum = 0;
  for (const int rank : ranks) sum += static_cast<float>(1 << rank);
  return sum;
}

/// A rank on the mesh, with a device for each of its two threads.
struct OnRank {
  OnRank(const MeshGroup& group, int number, const CommunicatorOptions& options)
      : grid(group), rank(number), mesh(group, number, options) {}

  Stream& stream(std::string_view axis) {
    return axis == "stage" ? stage->communication() : data->communication();
  }
  /// Sums along an axis again and again, with lengths that tell the axes apart.
  void sum_along(const std::string& axis, int times) {
    const float expected = sum_of(grid.ranks_along(rank, axis));
    for (int i = 0; i < times; ++i) {
      std::vector<float> values((axis == "data" ? 1000U : 30'000U) + static_cast<unsigned>(i % 50),
                                static_cast<float>(1 << rank));
      mesh.axis(axis).all_reduce(stream(axis), view_of(values), axis);
      for (const float value : values) ASSERT_EQ(value, expected) << axis << " of rank " << rank;
    }
  }
  /// The same along both axes at once. What each threw, or "".
  std::vector<std::string> sum_side_by_side(int times) {
    return messages_of_ranks(2, [&](int i) { sum_along(i == 0 ? "data" : "stage", times); });
  }
  void barrier() { mesh.world().barrier(stream("data"), "all have summed"); }

  const MeshGroup& grid;
  int rank;
  std::unique_ptr<Device> data = in_place_device(), stage = in_place_device();
  Mesh mesh;
};

/// Both axes at once, and then the world.
void sum_all_ways(const MeshGroup& group, int rank, const CommunicatorOptions& options) {
  OnRank own(group, rank, options);
  EXPECT_EQ(own.sum_side_by_side(15), std::vector<std::string>(2));
  std::vector<float> value(1, static_cast<float>(1 << rank));
  own.mesh.world().all_reduce(own.stream("data"), view_of(value), "all");
  EXPECT_EQ(value[0], 15);
}

TEST_P(Meshes, SumAlongTwoAxesSideBySide) {
  for (const char* strategy : {"ring", "auto"}) {
    Grid grid(GetParam());
    run_ranks(kRanks, [&](int rank) {
      sum_all_ways(grid.of(rank), rank, {.strategy = strategy, .timeout_seconds = 60});
    });
  }
}

// An axis that stands still for as long as another one goes on: with one stream of messages for
// both, the second would wait for the first, or take its messages.
TEST_P(Meshes, AnAxisGoesOnWhileAnotherWaits) {
  Grid grid(GetParam());
  run_ranks(kRanks, [&](int rank) {
    OnRank own(grid.of(rank), rank, {.timeout_seconds = 60});
    const bool waits = own.mesh.coordinate("stage") == 1;
    std::vector<float> word(7, waits ? 0.0F : 1.0F);
    const auto pass = [&] {
      own.mesh.axis("stage").broadcast(own.stream("stage"), 0, view_of(word), "word");
    };
    std::thread waiter;
    if (waits) waiter = std::thread([&] { EXPECT_NO_THROW(pass()); });
    EXPECT_NO_THROW({
      own.sum_along("data", 20);
      own.barrier();
    });
    if (waits) {
      waiter.join();
    } else {
      pass();
    }
    EXPECT_EQ(word[6], 1);
  });
}

TEST_P(Meshes, OneAbortEndsAllAxes) {
  Grid grid(GetParam());
  std::atomic<int> are_past{0};  // the barrier
  run_ranks(kRanks, [&](int rank) {
    OnRank own(grid.of(rank), rank, {.timeout_seconds = 60});
    own.barrier();
    ++are_past;
    while (are_past < kRanks) std::this_thread::yield();
    if (rank == 3) return own.mesh.axis("stage").abort("the cable was cut");
    const std::string why = "stopped, because rank 3 failed: the cable was cut";
    constexpr int kForEver = 1'000'000;
    EXPECT_EQ(own.sum_side_by_side(kForEver), (std::vector<std::string>{why, why}));
  });
}

TEST_P(Meshes, ATimeOutNamesTheAxisAndThePeer) {
  Grid grid(GetParam());
  const auto messages = messages_of_ranks(kRanks, [&](int rank) {
    OnRank own(grid.of(rank), rank, {.timeout_seconds = 60});
    own.sum_along("data", 3);  // of which the other axis tells nothing
    own.barrier();
    if (rank != 1) return;
    own.mesh.axis("stage").transport().set_timeout(0.3);
    std::vector<float> values(10);
    own.mesh.axis("stage").all_reduce(own.stream("stage"), view_of(values), "activations");
  });
  const std::string& message = messages[1];
  EXPECT_TRUE(contains(message,
                       "axis stage (ranks 1 and 3): rank 3 never entered #1 all_reduce "
                       "activations, 40 bytes; rank 3 was last seen before its first collective; "
                       "rank 1 waits in #1; "))
      << message;
  if (GetParam().machines > 1) return;  // then it says where all are
  EXPECT_FALSE(contains(message, "ranks 0") || contains(message, "rank 2")) << message;
}

TEST(Mesh, KnowsWhereARankStands) {
  LocalGroup group(6);
  const MeshGroup mesh(group, {{"stage", 2}, {"data", 3}});
  EXPECT_EQ(mesh.coordinate(4, "stage"), 1);
  EXPECT_EQ(mesh.coordinate(4, "data"), 1);
  EXPECT_EQ(mesh.ranks_along(4, "stage"), (std::vector<int>{1, 4}));
  EXPECT_EQ(mesh.ranks_along(4, "data"), (std::vector<int>{3, 4, 5}));
  for (int rank = 0; rank < 6; ++rank) {
    for (const auto& [axis, size] : mesh.axes()) {
      const Transport& transport = mesh.transport(rank, axis);
      EXPECT_EQ(transport.rank(), mesh.coordinate(rank, axis));
      EXPECT_EQ(transport.size(), size);
      EXPECT_EQ(transport.in_world(transport.rank()), rank);
    }
  }
}

TEST(Mesh, OnSeveralMachinesKnowsThoseOfAnAxis) {
  LocalGroup group(4);
  group.set_machines({0, 0, 1, 1});
  const MeshGroup mesh(group, kAxes);
  EXPECT_EQ(mesh.transport(3, "data").world(), (World{1, 2, 1, 2, 0, 1, 1, 2}));
  EXPECT_EQ(mesh.transport(3, "stage").world(), (World{1, 2, 1, 2, 1, 2, 0, 1}));
  EXPECT_EQ(mesh.transport(3, "stage").machine_of(0), 0);
  EXPECT_EQ(mesh.transport(3, "stage").machine_of(1), 1);
}

TEST(Mesh, OfOneAxisIsTheWorld) {
  LocalGroup group(3);
  const MeshGroup mesh(group);
  EXPECT_EQ(group.channels(), 1);
  EXPECT_EQ(mesh.axes().front().name, "data");
  run_ranks(3, [&](int rank) {
    Mesh own(mesh, rank, {.timeout_seconds = 20});
    EXPECT_EQ(&own.axis("data"), &own.world());
    EXPECT_EQ(&own.world().transport(), &group.transport(rank));
  });
}

TEST(Mesh, TellsWhatIsNone) {
  LocalGroup group(4);
  const auto told = [&](const std::vector<MeshAxis>& axes) {
    return testing::message_of<ContractError>([&] { const MeshGroup mesh(group, axes); });
  };
  EXPECT_TRUE(contains(told({{"stage", 3}, {"data", 2}}),
                       "a mesh of stage 3 x data 2 does not have the 4 ranks of the world; give "
                       "sizes whose product is that"));
  EXPECT_TRUE(contains(told({{"data", 0}}), "a mesh of data 0 does not have the 4 ranks"));
  EXPECT_TRUE(contains(told({{"a", 1 << 30}, {"b", 1 << 30}}), "does not have the 4 ranks"));
  EXPECT_TRUE(contains(told({{"data", 2}, {"data", 2}}), "every axis has a name of its own"));
  const MeshGroup mesh(group, kAxes);
  EXPECT_TRUE(contains(testing::message_of<ContractError>([&] { mesh.coordinate(0, "shard"); }),
                       "the mesh has no axis \"shard\"; it is stage 2 x data 2"));
}

TEST(Mesh, NamesTheWorldsRanksWhereAnAxisDiffers) {
  Grid grid(kThreads);
  const auto messages = messages_of_ranks(kRanks, [&](int rank) {
    Mesh mesh(grid.of(rank), rank, {.timeout_seconds = 20});
    const auto device = in_place_device();
    mesh.axis("stage").require_equal(device->communication(), {{"layers", rank == 3 ? "5" : "4"}});
  });
  EXPECT_TRUE(contains(messages[1],
                       "rank 0 has 4, rank 1 has 5 (axis stage is ranks 1 and 3 of "
                       "the world)"))
      << messages[1];
}

/// One of the processes that mpirun has started.
void run_under_mpi(const ProcessPosition& position) {
  ProcessGroup group(position, {.timeout_seconds = 60, .transport = ProcessTransport::mpi});
  {
    const MeshGroup mesh(group, kAxes);
    sum_all_ways(mesh, group.first_rank(), {.timeout_seconds = 60});
  }
  group.leave();
}

// Starts this test again, by mpirun.
TEST(MeshOverMpi, SumsAlongTwoAxesSideBySide) {
  const auto position = position_from_environment();
  if (position && position->launcher == "Open MPI") return run_under_mpi(*position);
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path folder = self.parent_path() / "../../bin";  // as built
  if (!std::filesystem::exists(folder / "libringlet_mpi.so")) {
    GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
  }
  const testing::TemporaryDirectory out;
  const auto run = [&out](const std::string& line) {
    return std::system(  // NOLINT(concurrency-mt-unsafe)
        (line + " >" + (out / "said").string() + " 2>&1").c_str());
  };
  if (run("mpirun --version") != 0) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  EXPECT_EQ(run("LD_LIBRARY_PATH=" + folder.string() +
                ":$LD_LIBRARY_PATH OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo "
                "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 "
                "-x LD_LIBRARY_PATH " +
                self.string() + " --gtest_filter=MeshOverMpi.*"),
            0)
      << testing::read_file(out / "said");
}

}  // namespace
}  // namespace ringlet::comm
