// Where a process stands, from each launcher's variables, right and wrong.
#include "comm/processes/launch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <string>

#include "base/error.h"
#include "comm/processes/message_socket.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<ProcessPosition> position_in(const Variables& variables) {
  return position_from_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  });
}

std::string refusal_of(const Variables& variables) {
  try {
    (void)position_in(variables);
  } catch (const ContractError& error) {
    return error.what();
  }
  return "nothing was refused";
}

Variables operator+(Variables base, const Variables& changes) {
  for (const auto& [name, value] : changes) base[name] = value;
  return base;
}

const Variables kByHand{
    {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "12"}};
const Variables kSlurm{{"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_LOCALID", "1"}, {"SLURM_NNODES", "1"},
                       {"SLURM_JOB_ID", "7"},  {"SLURM_STEP_ID", "0"}};

void expect_position(const Variables& variables, const std::string& launcher, int process,
                     int processes) {
  const auto position = position_in(variables);
  ASSERT_TRUE(position) << launcher;
  EXPECT_EQ(position->launcher, launcher);
  EXPECT_EQ(position->process, process);
  EXPECT_EQ(position->processes, processes);
}

TEST(Launch, WithoutALauncherThereIsNoPosition) {
  EXPECT_FALSE(position_in({}));
  EXPECT_FALSE(position_in({{"MASTER_ADDR", "localhost"}, {"LOCAL_RANK", "0"}}));
}

TEST(Launch, KnowsEveryLauncher) {
  expect_position(kByHand, "torchrun", 1, 3);
  expect_position(kByHand + Variables{{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "3"}}, "torchrun",
                  1, 3);
  expect_position(kOpenMpi, "Open MPI", 2, 4);
  expect_position({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_PORT", "host:1"}}, "PMI", 0, 2);
  expect_position(kSlurm, "Slurm", 1, 2);
  expect_position({{"RINGLET_PROCESS", "0"}, {"RINGLET_PROCESS_COUNT", "2"}, {"RINGLET_RUN", "x"}},
                  "ringlet", 0, 2);
}

TEST(Launch, TakesTheInnermostLauncherFirst) {
  expect_position(kSlurm + kOpenMpi, "Open MPI", 2, 4);
  expect_position(kSlurm + kOpenMpi + kByHand, "torchrun", 1, 3);
}

std::string warning_in(const Variables& variables) {
  return warning_of_launcher([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  });
}

TEST(Launch, WarnsOnceWhereNobodyTakesItsPosition) {
  const Variables first{{"RANK", "0"}};
  EXPECT_EQ(warning_in(kByHand + first),
            "torchrun has started 3 processes (WORLD_SIZE), and without --processes each of them "
            "does all the work for itself; add --processes, and they share it");
  EXPECT_EQ(warning_in(kByHand), "") << "process 0 says it";
  EXPECT_EQ(warning_in(kByHand + first + Variables{{"WORLD_SIZE", "1"}}), "");
  EXPECT_TRUE(contains(warning_in(kOpenMpi + Variables{{"OMPI_COMM_WORLD_RANK", "0"}}),
                       "Open MPI has started 4 processes (OMPI_COMM_WORLD_SIZE)"));
  EXPECT_TRUE(contains(warning_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), "PMI has started 2"));
  EXPECT_TRUE(contains(warning_in(kSlurm + Variables{{"SLURM_PROCID", "0"}}), "Slurm has started"));
  EXPECT_EQ(warning_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}), "")
      << "the script of sbatch is one process";
  EXPECT_EQ(warning_in({}), "");
}

TEST(Launch, DoesNotMindNonsenseWhereNobodyTakesItsPosition) {
  EXPECT_EQ(warning_in({{"RANK", "first"}, {"WORLD_SIZE", "2"}}), "");
  EXPECT_EQ(warning_in({{"RANK", "0"}, {"WORLD_SIZE", "many"}}), "");
  EXPECT_EQ(warning_in({{"RANK", "0"}}), "");
  // Nobody meets, so no address is asked for.
  EXPECT_TRUE(contains(warning_in({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}}),
                       "torchrun has started 2 processes"));
}

TEST(Launch, NamesEveryRunDifferently) {
  const Variables agent =
      kByHand + Variables{{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
  const std::string run = position_in(agent)->run;
  EXPECT_EQ(position_in(agent + Variables{{"RANK", "0"}})->run, run) << "one run, two processes";
  for (const Variables& change :
       {Variables{{"MASTER_PORT", "29501"}}, Variables{{"MASTER_ADDR", "10.0.0.1"}},
        Variables{{"TORCHELASTIC_RUN_ID", "a"}}, Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}},
        Variables{{"SLURM_JOB_ID", "7"}}, Variables{{"RINGLET_RUN", "a"}}}) {
    EXPECT_NE(position_in(agent + change)->run, run) << change.begin()->first;
  }
  EXPECT_NE(position_in(kSlurm)->run, position_in(kSlurm + Variables{{"SLURM_STEP_ID", "1"}})->run);
  EXPECT_NE(position_in(kOpenMpi)->run,
            position_in(kOpenMpi + Variables{{"PMIX_NAMESPACE", "13"}})->run);
}

TEST(Launch, LetsTheUserNameARunUnderEachLauncher) {
  const Variables named{{"RINGLET_RUN", "mine"}};
  const Variables pmi{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
  for (const Variables& launcher : {kByHand, kOpenMpi, kSlurm, pmi}) {
    for (const Variables& hub : {Variables{}, Variables{{"RINGLET_HUB", "node1:7"}}}) {
      EXPECT_NE(position_in(launcher + hub)->run, position_in(launcher + hub + named)->run);
    }
  }
}

TEST(Launch, KnowsAHostByAnyOfItsNames) {
  const auto run_at = [](const char* host, const Variables& more = {}) {
    return position_in(kByHand + Variables{{"MASTER_ADDR", host}} + more)->run;
  };
  for (const char* name : {"localhost", "127.0.1.1", "::1"}) {
    EXPECT_EQ(run_at(name), run_at("127.0.0.1"));
  }
  EXPECT_EQ(run_at("node1"), run_at("10.0.0.1")) << "they meet there, by whatever name";
  EXPECT_NE(run_at("node1"), run_at("node1", {{"MASTER_PORT", "29501"}}));
}

TEST(Launch, TellsTwoMpirunsOfOneNumberByTheirSecrets) {
  const std::string name = "OMPI_MCA_orte_precondition_transports";
  const auto run_with = [&name](const char* secret) {
    return position_in(kOpenMpi + Variables{{name, secret}})->run;
  };
  EXPECT_NE(run_with("3527b870"), run_with("3527b871"));
  EXPECT_EQ(run_with("3527b870").find("3527b870"), std::string::npos) << "names are shown";
}

/// A connected socket that another process of this user has made, as MPICH's hydra_pmi_proxy makes
/// one for each process that it starts.
class SocketOfAnother {
 public:
  explicit SocketOfAnother(const std::string& name) {
    const MessageSocket listener = MessageSocket::listen(name);
    auto [here, there] = MessageSocket::make_pair();
    child_ = ::fork();
    if (child_ == 0) {  // who listens last is who has made it
      if (::listen(listener.descriptor(), 1) == 0) (void)there.send({});
      ::pause();
    }
    (void)here.receive(std::chrono::milliseconds(20'000));
    ours_ = MessageSocket::connect(name);
  }
  ~SocketOfAnother() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  SocketOfAnother(const SocketOfAnother&) = delete;
  SocketOfAnother& operator=(const SocketOfAnother&) = delete;

  std::string number() const { return std::to_string(ours_.descriptor()); }

 private:
  pid_t child_ = -1;
  MessageSocket ours_;
};

TEST(Launch, TellsTwoMpiexecsByWhoStartedTheProcesses) {
  const auto run_with = [](const std::string& socket) {
    return position_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", socket}})->run;
  };
  const std::string name = "ringlet/launch test " + std::to_string(::getpid());
  const SocketOfAnother first(name + " 1"), second(name + " 2");
  ASSERT_NE(run_with(first.number()), "PMI");
  EXPECT_EQ(run_with(first.number()), run_with(first.number()));
  EXPECT_NE(run_with(first.number()), run_with(second.number())) << "the variables are the same";
  // A wrapper has closed it, or put something else there: all processes of the run are alike.
  EXPECT_EQ(run_with("1000000"), "PMI");
  EXPECT_EQ(position_in({{"PMI_RANK", "0"},
                         {"PMI_SIZE", "2"},
                         {"PMI_FD", first.number()},
                         {"RINGLET_HUB", "node1:7"}})
                ->run,
            "PMI")
      << "another machine has another starter";
}

TEST(Launch, NamesAValueThatIsTooLong) {
  const std::string longest(1024, 'x'), longer(20'000, 'x');
  EXPECT_EQ(position_in(kByHand + Variables{{"RINGLET_TOKEN", longest}})->token, longest);
  for (const std::string name : {"RINGLET_TOKEN", "RINGLET_RUN", "TORCHELASTIC_RUN_ID"}) {
    EXPECT_EQ(refusal_of(kByHand + Variables{{name, longer}}),
              name + " has 20000 bytes, and 1024 are the most; give it a shorter value");
  }
}

TEST(Launch, TakesNoEmptyToken) {  // as of a command that has failed: RINGLET_TOKEN=$(cat nowhere)
  for (const Variables& run : {kByHand, kOpenMpi}) {
    EXPECT_EQ(refusal_of(run + Variables{{"RINGLET_TOKEN", ""}}),
              "RINGLET_TOKEN is empty, and anybody knows that; give it a value or unset it");
  }
}

TEST(Launch, TakesMpirunsSecretForATokenWhereThereIsNone) {
  const std::string name = "OMPI_MCA_orte_precondition_transports";
  EXPECT_EQ(position_in(kOpenMpi)->token, "");
  EXPECT_EQ(position_in(kOpenMpi + Variables{{name, "3527b870"}})->token, "3527b870");
  EXPECT_EQ(position_in(kOpenMpi + Variables{{name, "3527b870"}, {"RINGLET_TOKEN", "x"}})->token,
            "x");
  EXPECT_EQ(position_in(kByHand + Variables{{name, "3527b870"}})->token, "")
      << "that is torchrun's";
}

TEST(Launch, NamesARunAlikeOnMachinesThatCountRestartsEachForItself) {
  const Variables agent =
      kByHand +
      Variables{{"MASTER_ADDR", "10.0.0.1"}, {"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}};
  const auto restarted = [&agent](const char* times) {
    return position_in(agent + Variables{{"TORCHELASTIC_RESTART_COUNT", times}});
  };
  ASSERT_TRUE(restarted("1")->hub);
  EXPECT_EQ(restarted("1")->run, restarted("2")->run);
}

TEST(Launch, NamesWhatIsMissingOrWrong) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}}), "RANK is set but WORLD_SIZE is not; a process needs both");
  EXPECT_EQ(refusal_of({{"OMPI_COMM_WORLD_SIZE", "2"}}),
            "OMPI_COMM_WORLD_SIZE is set but OMPI_COMM_WORLD_RANK is not; a process needs both");
  Variables without_port = kByHand;
  without_port.erase("MASTER_PORT");
  EXPECT_EQ(refusal_of(without_port),
            "RANK and WORLD_SIZE are set but MASTER_PORT is not; all processes of a run need the "
            "same one");
  for (const std::string bad : {"", "two", "-1", "1x", "99999999999"}) {
    EXPECT_EQ(refusal_of(kByHand + Variables{{"RANK", bad}}),
              "RANK is '" + bad + "', which is not a whole number");
  }
  EXPECT_EQ(refusal_of(kByHand + Variables{{"RANK", "3"}}),
            "RANK is 3 but WORLD_SIZE is 3; it goes from 0 to 2");
  EXPECT_EQ(refusal_of(kByHand + Variables{{"WORLD_SIZE", "0"}}),
            "WORLD_SIZE is 0; there is at least one");
}

TEST(Launch, NamesContradictions) {
  EXPECT_EQ(refusal_of(kByHand + Variables{{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "3"}}),
            "LOCAL_RANK is 0 but RANK is 1; on one machine they are equal: let one launcher set "
            "both, or unset the first");
  EXPECT_EQ(refusal_of(kByHand + Variables{{"LOCAL_WORLD_SIZE", "4"}}),
            "LOCAL_WORLD_SIZE is 4 but WORLD_SIZE is only 3; let one launcher set both, or unset "
            "the first");
}

const Variables kTwoNodes =
    kByHand + Variables{{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}};

TEST(Launch, MeetsOverTcpWhereTheProcessesMayBeOnSeveralMachines) {
  const auto torchrun = position_in(kTwoNodes);
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->hub, (TcpAddress{"node1", 29500}));
  EXPECT_EQ(torchrun->local_process, 0);
  EXPECT_EQ(position_in(kTwoNodes + Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}})->hub,
            (TcpAddress{"node1", 29501}));
  EXPECT_EQ(position_in(kByHand + Variables{{"MASTER_ADDR", "10.0.0.1"}})->hub,
            (TcpAddress{"10.0.0.1", 29500}))
      << "nothing says that all are here";
  const Variables by_address{{"RINGLET_HUB", "node1:7"}, {"RINGLET_TOKEN", "x"}};
  for (const Variables& launcher : {kByHand, kOpenMpi, kSlurm, kTwoNodes}) {
    EXPECT_EQ(position_in(launcher + by_address)->hub, (TcpAddress{"node1", 7}));
    EXPECT_EQ(position_in(launcher + by_address)->token, "x");
  }
  const Variables two_nodes{{"SLURM_NNODES", "2"}, {"MASTER_ADDR", "n"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(position_in(kSlurm + two_nodes)->hub, (TcpAddress{"n", 1}));
}

TEST(Launch, MeetsAtTheFirstNodeOfSrunsStep) {
  const auto hub_in = [](const std::string& nodes, const Variables& changes = {}) {
    const Variables step{{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", nodes}};
    return position_in(kSlurm + step + changes)->hub;
  };
  EXPECT_EQ(hub_in("m[0-1]"), (TcpAddress{"m0", 20007}));
  EXPECT_EQ(hub_in("a,b[1-2]"), (TcpAddress{"a", 20007}));
  EXPECT_EQ(hub_in("gpu[07-09,12],big1"), (TcpAddress{"gpu07", 20007}));
  EXPECT_EQ(hub_in("rack[2-3]-node[010,012].cluster,x"),
            (TcpAddress{"rack2-node010.cluster", 20007}));
  EXPECT_EQ(hub_in("m[0-1]", {{"SLURM_STEP_ID", "1"}}), (TcpAddress{"m0", 21016}));
  EXPECT_EQ(hub_in("m[0-1]", {{"SLURM_JOB_ID", "67108863"}, {"SLURM_STEP_ID", "2147483647"}}),
            (TcpAddress{"m0", 28686}));
  EXPECT_EQ(hub_in("m[0-1]", {{"RINGLET_HUB", "n:7"}}), (TcpAddress{"n", 7}));
}

TEST(Launch, TakesOnlySrunForSlurmsLauncher) {
  const Variables script{
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_FALSE(position_in(script)) << "sbatch's script is one process";
  const Variables shell{{"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_FALSE(position_in(shell)) << "salloc's shell, too";
}

TEST(Launch, TakesSrunsOwnVariablesBeforeItsPmi) {
  const Variables pmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "7.0"}};
  expect_position(kSlurm + pmi, "Slurm", 1, 2);
  const Variables of_hydra{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}};  // whose helpers srun has started
  expect_position(kSlurm + of_hydra, "PMI", 3, 4);
  expect_position(kSlurm + pmi + of_hydra, "PMI", 3, 4);
}

TEST(Launch, MeetsUnderTheRunsNameOnOneMachine) {
  for (const Variables& launcher :
       {kByHand, kOpenMpi, kSlurm, kByHand + Variables{{"MASTER_ADDR", "localhost"}},
        kByHand + Variables{{"MASTER_PORT", "any text"}},
        kTwoNodes + Variables{{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "3"}},
        kSlurm + Variables{{"SLURM_NNODES", "2"}, {"SLURM_STEP_NUM_NODES", "1"}}}) {
    EXPECT_FALSE(position_in(launcher)->hub);
  }
  const Variables ours{{"RINGLET_PROCESS", "0"},
                       {"RINGLET_PROCESS_COUNT", "2"},
                       {"RINGLET_RUN", "x"},
                       {"RINGLET_HUB", "node1:7"}};
  EXPECT_FALSE(position_in(ours)->hub) << "--processes N starts them here";
}

TEST(Launch, NamesTheAddressThatIsMissingOrWrong) {
  Variables nodes = kSlurm + Variables{{"SLURM_NNODES", "2"}};
  EXPECT_EQ(refusal_of(nodes),
            "processes on several machines need an address to meet at (SLURM_NNODES is 2); set "
            "RINGLET_HUB=HOST:PORT for all of them, with the machine of process 0 and a port that "
            "is free there");
  EXPECT_EQ(refusal_of(nodes + Variables{{"RINGLET_HUB", "node1"}}),
            "RINGLET_HUB is 'node1', which is not HOST:PORT, the address of the machine that "
            "process 0 runs on and a port that is free there");
  for (const std::string host : {"0.0.0.0", "::"}) {
    const std::string why =
        " is '" + host +
        "', which stands for all addresses of a machine; name the one at which "
        "the others reach the machine of process 0, or localhost where all are on one";
    EXPECT_EQ(refusal_of(kByHand + Variables{{"MASTER_ADDR", host}}), "MASTER_ADDR" + why);
    EXPECT_EQ(refusal_of(kByHand + Variables{{"RINGLET_HUB", "[" + host + "]:29500"}}),
              "RINGLET_HUB's host" + why);
  }
  EXPECT_EQ(refusal_of(kTwoNodes + Variables{{"MASTER_PORT", "65536"}}),
            "MASTER_PORT is '65536', which is no port from 1 to 65535, and the processes are on "
            "several machines");
  EXPECT_EQ(refusal_of(kTwoNodes + Variables{{"LOCAL_RANK", "2"}}),
            "LOCAL_RANK is 2 but LOCAL_WORLD_SIZE is 2; it goes from 0 to 1");
}

TEST(Launch, ProcessesTakeTheDevicesThatTheySeeInTurn) {
  const auto first = [](int process, int replicas, int visible) {
    return first_device({process, 8, "a run", "torchrun"}, replicas, visible);
  };
  EXPECT_EQ(first(0, 2, 8), 0);
  EXPECT_EQ(first(3, 2, 8), 6);
  EXPECT_EQ(first(5, 1, 1), 0);  // the launcher shows each process one
  EXPECT_EQ(first(5, 2, 4), 2);
  EXPECT_EQ(first(5, 2, 0), 10);
  ProcessPosition spread{5, 8, "a run", "torchrun"};
  spread.hub = TcpAddress{"node1", 29500};
  spread.local_process = 1;
  EXPECT_EQ(first_device(spread, 2, 0), 2) << "the second on its machine";
}

}  // namespace
}  // namespace ringlet::comm
