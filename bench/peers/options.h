// The flags that all peers have, and how they end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/peers/measurement.h"

namespace CLI {
class App;
}

namespace ringlet::bench::peers {

/// What the user asks for.
struct Options {
  std::vector<std::int64_t> sizes{};  ///< bytes; where empty, begin, begin * factor, ... up to end
  std::int64_t begin = 4096;
  std::int64_t end = 64 << 20;
  int factor = 4;
  Calls calls{};
};

/// Adds --sizes, --begin, --end, --factor, --iterations, --seconds and --warmup to `app`, which
/// keeps a reference.
void add_options(CLI::App& app, Options& options);

/// The sizes in bytes, in order. Throws std::invalid_argument, naming flag and remedy, where one is
/// no whole number of floats or larger than 1 GiB (Gloo counts bytes in an int).
std::vector<std::int64_t> sizes_of(const Options& options);

/// Exit codes, as the program's own.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

/// Parses, runs and returns the code to end with. --help goes to stdout; a failure is one line on
/// stderr. Where all ranks read the same command line, only the one that `speaks` prints.
int run_program(CLI::App& app, int argc, char** argv, bool speaks,
                const std::function<void()>& run);

/// The code that `run` returns; kFailed and a line on stderr for what it throws.
int run_guarded(const char* program, const std::function<int()>& run);

/// The data of one case: `bytes` bytes that begin where a vector and a line of the cache do.
class Floats {
 public:
  explicit Floats(std::int64_t bytes);
  std::span<float> span() { return {lines_.front().values, count_}; }

 private:
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> lines_;
  std::size_t count_;
};

}  // namespace ringlet::bench::peers
