#include "app/compare/side.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/one_line.h"
#include "bench/all_reduce/measurement.h"

namespace ringlet::app::compare {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestWord = 80;

/// "PREPOSITION a, b, c" of what is not empty.
std::string phrase(const char* preposition, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const std::string& word : words) {
    if (!word.empty()) known.push_back(word);
  }
  return known.empty() ? "" : fmt::format("{} {}", preposition, fmt::join(known, ", "));
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "measurements of 'ringlet bench all-reduce'";
    case Kind::training:
      return "a measurement of 'ringlet bench train'";
    case Kind::scaling:
      return "a measurement of 'ringlet bench train' with several numbers of replicas";
    case Kind::run:
      break;
  }
  return "a run";
}

std::string word_in(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) return "";
  if (found->is_string()) return on_one_line(found->get<std::string>(), kLongestWord);
  return found->is_number() || found->is_boolean() ? found->dump() : "";
}

std::string machine_words(const std::string& processor, const std::string& cores,
                          const std::string& instruction_set, const std::string& gpus) {
  return phrase("on",
                {on_one_line(processor, kLongestWord),
                 cores.empty() ? "" : cores + (cores == "1" ? " core" : " cores"),
                 on_one_line(instruction_set, kLongestWord), on_one_line(gpus, kLongestWord)});
}

std::string build_words(const std::string& commit, const std::string& compiler,
                        const std::string& type) {
  constexpr std::size_t kWholeHash = 40, kTelling = 12;  // digits
  const bool is_long = commit.find_first_not_of("0123456789abcdef") >= kWholeHash;
  const std::string known =
      is_long ? commit.substr(0, kTelling) + commit.substr(std::min(kWholeHash, commit.size()))
              : commit;
  return phrase("by a build of",
                {on_one_line(known, kLongestWord), on_one_line(compiler, kLongestWord),
                 on_one_line(type, kLongestWord)});
}

Trait use_of_cores(double shared) {
  constexpr double kLittle = 0.2, kMuch = 0.6;
  Trait trait{.of = "use of cores", .said = {}, .of_both = true};
  if (shared >= 0 && shared <= kLittle) trait.said = "on cores of their own";
  if (shared >= kMuch) trait.said = "on cores that were shared";
  return trait;
}

std::string machine_words(const nlohmann::json& machine) {
  return machine_words(word_in(machine, "processor"), word_in(machine, "cores"),
                       word_in(machine, "instruction_set"), word_in(machine, "gpu"));
}

std::string build_words(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("build")) return "";
  const nlohmann::json& build = document.at("build");
  return build_words(word_in(build, "commit"), word_in(build, "compiler"),
                     word_in(build, "build_type"));
}

Side read_side(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return run_side(path);
  const std::string text = read_text(path, bench::kMostRowsBytes);
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    throw FileError(
        path.string() +
        " is empty; name a file of 'ringlet bench all-reduce --json' or 'bench train --json', or "
        "the --out of a run");
  }
  // Words that only a measurement of training has, so that one that is cut is known as well.
  const bool is_training =
      text.find("\"batch_size\"") != text.npos || text.find("\"samples_per_second\"") != text.npos;
  return is_training ? training_side(path) : all_reduce_side(path);
}

}  // namespace ringlet::app::compare
