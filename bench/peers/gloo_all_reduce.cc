// Gloo's all-reduce between processes of one machine, timed as Ringlet times its own
// (measurement.h): a line of JSON for each transport, algorithm and size. It forks its ranks
// itself; they meet through files in a temporary folder and talk over the loopback, or each from
// another machine that scripts/machines plays.
//
//   gloo_all_reduce --ranks 2 --sizes 4K,512K --strategies ring,halving-doubling
//   scripts/machines 2 --rate 1gbit -- bash -c '((MACHINE)) || gloo_all_reduce --machines'
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "bench/peers/forked_ranks.h"
#include "bench/peers/gloo_algorithms.h"
#include "bench/peers/options.h"

namespace ringlet::bench::peers {

namespace {

using Names = std::vector<std::string>;

struct GlooOptions {
  Options common;
  int ranks = 2;
  bool bind = false;
  bool machines = false;
  Names transports = gloo_transports();
  Names strategies = gloo_strategies();
};

/// A folder of our own under TMPDIR, gone with the object.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "gloo_all_reduce.XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error(path_ +
                               " cannot be made; is TMPDIR a folder that you may write to?");
    }
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// All strategies and sizes on one transport.
void measure_on(const std::string& transport, const GlooOptions& options, Meeting& meeting,
                const std::string& folder, const std::string& address) {
  const auto context = connect_gloo(transport, meeting.rank(), meeting.ranks(), folder, address);
  for (const std::string& strategy : options.strategies) {
    if (!runs_on(strategy, transport)) continue;
    for (const std::int64_t bytes : sizes_of(options.common)) {
      Floats floats(bytes);
      const Calls& calls = options.common.calls;
      Measurement row =
          measure(meeting, floats.span(), calls, gloo_all_reduce(strategy, context, floats.span()));
      row.engine = "gloo";
      row.transport = transport;
      row.strategy = strategy;
      if (meeting.rank() == 0) print_line(row);
    }
  }
}

void run(const GlooOptions& options) {
  sizes_of(options.common);  // refused here, once, rather than in every rank
  const int iterations = most_timed(options.common.calls);
  const ForkedMemory memory(Meeting::bytes(options.ranks, iterations));
  const Folder folder;
  run_forked(options.ranks, [&](int rank) {
    if (options.bind) bind_to_processor(rank);
    const std::string address = options.machines ? enter_machine(rank) : "127.0.0.1";
    Meeting meeting(memory.data(), rank, options.ranks, iterations);
    for (const std::string& transport : options.transports) {
      measure_on(transport, options, meeting, folder.path(), address);
    }
  });
}

void add_gloo_options(CLI::App& app, GlooOptions& options) {
  constexpr int kMostRanks = 64;
  add_options(app, options.common);
  app.add_option("--ranks", options.ranks, "processes [2]")
      ->check(CLI::Range(2, kMostRanks).description(""))
      ->type_name("N");
  app.add_flag("--bind", options.bind, "each rank and its threads on one processor, in turn");
  app.add_flag("--machines", options.machines, "each rank from a machine of scripts/machines");
  app.add_option("--transports", options.transports, "how bytes go [all]")
      ->delimiter(',')
      ->check(CLI::IsMember(gloo_transports()))
      ->type_name("LIST");
  app.add_option("--strategies", options.strategies, "which algorithms sum [all]")
      ->delimiter(',')
      ->check(CLI::IsMember(gloo_strategies()))
      ->type_name("LIST");
}

int run(int argc, char** argv) {
  CLI::App app("Times Gloo's all-reduce (f32, sum, in place) between processes of this machine.",
               "gloo_all_reduce");
  GlooOptions options;
  add_gloo_options(app, options);
  return run_program(app, argc, argv, true, [&] { run(options); });
}

}  // namespace

}  // namespace ringlet::bench::peers

int main(int argc, char** argv) {
  namespace peers = ringlet::bench::peers;
  return peers::run_guarded("gloo_all_reduce", [&] { return peers::run(argc, argv); });
}
