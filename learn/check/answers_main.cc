// learn_answers CHAPTER FILE [--json]: whether a chapter's answers are right. Files of the
// learner's own runs lie beside FILE; of chapter 3, in the folder of chapter 2.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "learn/check/answers.h"

namespace ringlet::learn {
namespace {

/// The name of a chapter that asks for numbers; empty for others.
std::string name_of_chapter(const std::string& text) {
  for (const auto& [number, name] : {std::pair{"3", "look"}, {"4", "cost"}, {"6", "lenet"}}) {
    if (text == number || text == name) return name;
  }
  return {};
}

std::string check(const std::string& chapter, const std::filesystem::path& file) {
  const Answers answers(file);
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (chapter == "look") return check_look(answers, folder / ".." / "2-ring" / "trace.json");
  if (chapter == "cost") return check_cost_answers(answers, folder);
  return check_gap(answers, folder);
}

Finding finding_of(const std::string& chapter, const std::filesystem::path& file) {
  try {
    return {.verdict = Verdict::passed, .words = check(chapter, file)};
  } catch (const Wrong& wrong) {
    return {.verdict = wrong.verdict, .words = wrong.what()};
  } catch (const nlohmann::json::exception& error) {
    return {.verdict = Verdict::no_build,
            .words = std::string("a file of your run is not what README.md's command writes: ") +
                     error.what()};
  }
}

int run(const std::string& chapter, const std::filesystem::path& file, bool json) {
  const Finding finding = finding_of(chapter, file);
  const std::string verdict(name_of(finding.verdict));
  if (json) {
    std::printf("%s\n", json_of(chapter, finding).c_str());
  } else {
    std::printf("%s: %s\n", verdict.c_str(), finding.words.c_str());
  }
  return finding.verdict == Verdict::passed ? 0 : 1;
}

}  // namespace
}  // namespace ringlet::learn

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool json = arguments.size() == 3 && arguments[2] == "--json";
  const std::string chapter =
      arguments.empty() ? "" : ringlet::learn::name_of_chapter(arguments[0]);
  if (chapter.empty() || arguments.size() < 2 || (arguments.size() > 2 && !json)) {
    std::fprintf(stderr,
                 "learn_answers: CHAPTER FILE [--json]; CHAPTER: 3 look, 4 cost, 6 lenet\n");
    return 2;
  }
  try {
    return ringlet::learn::run(chapter, arguments[1], json);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "learn_answers: %s\n", error.what());
    return 2;
  }
}
