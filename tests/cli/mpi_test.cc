// --transport mpi: what mpirun starts trains and measures over MPI; what it has not started is told
// so; a process that dies is named.
#include <csignal>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(RINGLET_PROGRAM).parent_path() / "libringlet_mpi.so")) {
      GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
    }
    if (Program(ShellLine{"exec mpirun --version"}).wait(60).code != 0) {
      GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
    }
  }
  /// The shell line that starts two processes.
  static std::string mpirun(const std::vector<std::string>& arguments) {
    std::string line =
        "exec env TERM=dumb OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo mpirun "
        "--allow-run-as-root --oversubscribe --bind-to none -n 2 " RINGLET_PROGRAM;
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    return line;
  }
  const TemporaryDirectory folder_;
};

TEST_F(Mpi, TrainsToTheBytesOfThreads) {
  const fs::path threads = folder_ / "threads", processes = folder_ / "processes";
  std::vector<std::string> run = quick_train({"--exact", "--replicas", "4", "--out", threads});
  ASSERT_TRUE(succeeds(ringlet(run)));
  run = quick_train(
      {"--exact", "--replicas", "2", "--processes", "--transport", "mpi", "--out", processes});
  const Outcome outcome = Program(ShellLine{mpirun(run)}).wait(60);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, {"4 in 2 processes", "transport mpi"}));
  EXPECT_EQ(read_file(threads / "model.safetensors"), read_file(processes / "model.safetensors"));
}

TEST_F(Mpi, SumsExactlyByEveryStrategyAndItsOwn) {
  for (const char* type : {"f32", "bf16"}) {
    const Outcome outcome =
        Program(
            ShellLine{mpirun({"bench", "all-reduce", "--processes", "--transport", "mpi", "--begin",
                              "1K", "--end", "4M", "--factor", "4096", "-n", "3", "--type", type})})
            .wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.err;  // which says that nothing was wrong
    EXPECT_TRUE(holds(outcome.out,
                      {"2 ranks as processes", "mpi transport", "  ring ", "  mpi ", "  library "}))
        << type;
  }
}

TEST_F(Mpi, IsRefusedWhereMpirunHasNotStartedTheProcesses) {
  const Outcome outcome = ringlet(quick_train({"--processes", "2", "--transport", "mpi"}));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, {"--transport mpi is for processes that mpirun or srun has "
                                  "started, and these were started by --processes N; start them "
                                  "so, or use --transport gloo"}));
}

TEST_F(Mpi, NamesTheProcessThatDies) {
  // The second process kills itself once the first epoch is over.
  const std::string script =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then "
      "(until grep -q '^ *1 ' " +
      (folder_ / "out").string() +
      "; do sleep 0.05; done; "
      "kill -9 $$) & fi; exec \"$@\" >>" +
      (folder_ / "out").string();
  const std::string line =
      "exec env TERM=dumb OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo mpirun "
      "--allow-run-as-root --oversubscribe --bind-to none -n 2 sh -c \"$SCRIPT\" . " RINGLET_PROGRAM
      " train --data synthetic --synthetic-train 640 --model mlp --batch-size 64 --epochs 100000 "
      "--lr 0.001 --no-out --processes --transport mpi";
  write_file(folder_ / "out", "");
  const Outcome outcome = Program(ShellLine{"export SCRIPT='" + script + "'; " + line}).wait(60);
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(holds(outcome.err, {"process 1 (pid "})) << outcome.err;
}

}  // namespace
}  // namespace ringlet::testing
