#include "bench/peers/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace ringlet::bench::peers {

namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kLargest = 1 << 30;  // Gloo counts bytes in an int
constexpr int kMostCalls = 1'000'000;

void check_size(std::int64_t bytes, const char* flag) {
  if (bytes >= kFloat && bytes <= kLargest && bytes % kFloat == 0) return;
  throw std::invalid_argument(fmt::format(
      "{} {} is not a whole number of floats up to 1 GiB; give a multiple of 4", flag, bytes));
}

/// CLI11 tells of several mistakes in several lines.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

void complain(const CLI::App& app, const std::string& why) {
  fmt::print(stderr, "{}: error: {} ({} --help)\n", app.get_name(), one_line(why), app.get_name());
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  CLI::Validator size = CLI::AsSizeValue(false);  // 64K and 4M as well
  size.description("");
  const auto count = [](int least) { return CLI::Range(least, kMostCalls).description(""); };
  app.add_option("--sizes", options.sizes,
                 "sizes such as 4K,64K,4M (instead of begin, end, factor)")
      ->delimiter(',')
      ->transform(size)
      ->type_name("BYTES");
  app.add_option("-b,--begin", options.begin, "smallest size [4K]")
      ->transform(size)
      ->type_name("BYTES");
  app.add_option("-e,--end", options.end, "largest size [64M]")
      ->transform(size)
      ->type_name("BYTES");
  app.add_option("-f,--factor", options.factor, "each size is so many times the one before [4]")
      ->check(count(2))
      ->type_name("N");
  app.add_option("-n,--iterations", options.calls.timed,
                 "timed calls of each size [as many as take 0.2 s, 5 to 1000]")
      ->check(count(1))
      ->type_name("N");
  app.add_option("--seconds", options.calls.seconds,
                 "without --iterations, how long the calls of a size take together [0.2]")
      ->check(CLI::Range(1e-3, 60.0).description(""))
      ->type_name("X");
  app.add_option("-w,--warmup", options.calls.warm_up, "calls before them [5]")
      ->check(count(1))
      ->type_name("N");
}

std::vector<std::int64_t> sizes_of(const Options& options) {
  for (const std::int64_t bytes : options.sizes) check_size(bytes, "--sizes");
  if (!options.sizes.empty()) return options.sizes;
  check_size(options.begin, "--begin");
  if (options.end < options.begin || options.end > kLargest) {
    throw std::invalid_argument(
        fmt::format("--end {} is not from --begin {} to 1 GiB", options.end, options.begin));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = options.begin; bytes <= options.end; bytes *= options.factor) {
    sizes.push_back(bytes);
  }
  return sizes;
}

int run_program(CLI::App& app, int argc, char** argv, bool speaks,
                const std::function<void()>& run) {
  const auto fail = [&](int code, const std::string& why) {
    if (speaks) complain(app, why);
    return code;
  };
  try {
    app.parse(argc, argv);
    run();
    return kDone;
  } catch (const CLI::CallForHelp&) {
    if (speaks) fmt::print("{}", app.help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kUsage, error.what());
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}

int run_guarded(const char* program, const std::function<int()>& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: error: %s\n", program, error.what());
    return kFailed;
  }
}

Floats::Floats(std::int64_t bytes)
    : lines_(static_cast<std::size_t>(bytes) / sizeof(Line) + 1),
      count_(static_cast<std::size_t>(bytes / kFloat)) {}

}  // namespace ringlet::bench::peers
