// learn_check: what it finds in a learner's file, which check_file has compiled.
//
//   learn_check CHAPTER LIBRARY [--json] [--trace FILE] [--eager BYTES]
//   learn_check CHAPTER --no-build WORDS [--json]
//   learn_check --plants FILE            names, verdicts and words of what can be planted
//   learn_check --plant FILE NAME ROOT   that file of the product with the fault in it
//
// Exit codes: 0 passed, 1 not, 2 trouble of its own.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/one_line.h"
#include "learn/check/chapters.h"
#include "learn/check/child.h"
#include "learn/check/layers.h"
#include "learn/check/learners_file.h"
#include "learn/check/plants.h"
#include "learn/check/verdict.h"

namespace ringlet::learn {

namespace {

struct Arguments {
  const Chapter* chapter = nullptr;
  std::string library{};
  std::optional<std::string> no_build{};
  std::string trace{};
  std::optional<std::int64_t> eager_bytes{};
  bool json = false;
};

std::int64_t bytes_of(const std::string& text) {
  std::int64_t bytes = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error == std::errc() && end == text.data() + text.size() && bytes >= 0) return bytes;
  throw ContractError(fmt::format("--eager: '{}' is no number of bytes, such as 65536", text));
}

std::optional<Arguments> parse(const std::vector<std::string>& words) {
  if (words.size() < 2) return std::nullopt;
  Arguments arguments{.chapter = find_chapter(words[0])};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--json") {
      arguments.json = true;
    } else if (words[i] == "--no-build" && has_value) {
      arguments.no_build = words[++i];
    } else if (words[i] == "--trace" && has_value) {
      arguments.trace = words[++i];
    } else if (words[i] == "--eager" && has_value) {
      arguments.eager_bytes = bytes_of(words[++i]);
    } else if (arguments.library.empty()) {
      arguments.library = words[i];
    } else {
      return std::nullopt;
    }
  }
  if (arguments.chapter == nullptr) return std::nullopt;
  return arguments;
}

/// The first lines of what the file printed in its last case.
void show_printed(const std::string& printed) {
  constexpr int kLines = 20;
  if (printed.empty()) return;
  std::size_t end = 0;
  for (int line = 0; line < kLines && end < printed.size(); ++line) {
    end = std::min(printed.find('\n', end), printed.size() - 1) + 1;
  }
  fmt::print(stderr, "the file printed:\n{}{}\n", printable(printed.substr(0, end)),
             end < printed.size() ? "..." : "");
}

int check(const Arguments& arguments) {
  Finding finding{.verdict = Verdict::no_build};
  if (arguments.no_build) {
    constexpr std::size_t kLongest = 600;  // bytes: g++ can say much in one line
    finding.words = on_one_line(without_renaming(*arguments.no_build), kLongest);
  } else {
    std::string printed;
    finding = in_child(
        {},
        [&](Board& board) {
          const std::string_view defines = arguments.chapter->defines;
          if (arguments.chapter->strategy.empty()) run_own_check(arguments.library, defines, board);
          const LearnersFile file = open_learners_file(arguments.library, defines, board);
          if (arguments.eager_bytes) {
            check_eager(*arguments.chapter, file, *arguments.eager_bytes, board);
          }
          check_layers(*arguments.chapter, file, board, arguments.trace);
        },
        &printed);
    show_printed(printed);
    const bool has_trace = finding.verdict == Verdict::passed && !arguments.trace.empty();
    if (has_trace && std::filesystem::exists(arguments.trace)) finding.trace = arguments.trace;
  }
  const std::string chapter(arguments.chapter->name);
  if (arguments.json) {
    fmt::print("{}\n", json_of(chapter, finding));
  } else {
    fmt::print("{}: {}\n", name_of(finding.verdict), finding.words);
  }
  return finding.verdict == Verdict::passed ? 0 : 1;
}

int list_plants(const std::string& file) {
  for (const Plant& plant : read_plants(file)) {
    fmt::print("{}\t{}\t{}\n", plant.name, plant.verdict, plant.words);
  }
  return 0;
}

int print_planted(const std::string& file, const std::string& name, const std::string& root) {
  for (const Plant& plant : read_plants(file)) {
    if (plant.name != name) continue;
    fmt::print("{}", planted(plant, root));
    return 0;
  }
  throw ContractError(fmt::format("{} has no '{}'", file, name));
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--plants") return list_plants(words[1]);
  if (words.size() == 4 && words[0] == "--plant")
    return print_planted(words[1], words[2], words[3]);
  if (const auto arguments = parse(words)) return check(*arguments);
  fmt::print(stderr, "learn_check: CHAPTER LIBRARY [--json] [--trace FILE]\n");
  return 2;
}

}  // namespace

}  // namespace ringlet::learn

int main(int count, char** words) {
  try {
    return ringlet::learn::run({words + 1, words + count});
  } catch (const ringlet::learn::Interrupted&) {
    fmt::print(stderr, "learn_check: interrupted\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "learn_check: {}\n", error.what());
  }
  return 2;
}
