// docs/troubleshooting.md and the sources agree: the words of a message that no test provokes stand
// in the sources, and the messages that the sources throw at a user stand in the page.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/cli/troubleshooting.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Where the literal that begins at `at` ends, behind its quotes; both kinds, and raw ones.
std::size_t end_of_literal(const std::string& code, std::size_t at) {
  if (at > 0 && code[at] == '"' && code[at - 1] == 'R') {
    const std::string closing = ")" + code.substr(at + 1, code.find('(', at) - at - 1) + "\"";
    return code.find(closing, at) + closing.size();
  }
  std::size_t end = at + 1;
  while (end < code.size() && code[end] != code[at]) end += code[end] == '\\' ? 2 : 1;
  return end + 1;
}

bool begins_literal(const std::string& code, std::size_t at) {
  const bool in_number = at > 0 && std::isalnum(static_cast<unsigned char>(code[at - 1])) != 0;
  return code[at] == '"' || (code[at] == '\'' && !in_number);  // 1'000'000
}

/// The texts of `code`, adjacent literals joined. `code` is without comments.
std::vector<std::string> literals(const std::string& code) {
  std::vector<std::string> texts;
  std::size_t last_end = std::string::npos;
  for (std::size_t at = 0; at < code.size();) {
    if (!begins_literal(code, at)) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(end_of_literal(code, at), code.size());
    if (code[at] == '"') {
      const bool goes_on =
          last_end != std::string::npos && code.find_first_not_of(" \n", last_end) == at;
      if (!goes_on) texts.emplace_back();
      static const std::regex kEscaped(R"(\\(.))");
      texts.back() += std::regex_replace(code.substr(at + 1, end - at - 2), kEscaped, "$1");
      last_end = end;
    }
    at = end;
  }
  return texts;
}

std::string without_comments(const std::string& code) {
  std::string kept;
  for (std::size_t at = 0; at < code.size();) {
    std::size_t end = at + 1;
    if (begins_literal(code, at)) {
      end = std::min(end_of_literal(code, at), code.size());
    } else if (code.compare(at, 2, "//") == 0) {
      at = std::min(code.find('\n', at), code.size());
      end = at;
    }
    kept += code.substr(at, end - at);
    at = end;
  }
  return kept;
}

/// The parts of a text between the matches of `variable`, without blanks and points at their ends.
std::vector<std::string> fixed_parts(const std::string& text, const char* variable) {
  static const std::regex kBlanks("^[ ;:,]+|[ ;:,]+$");
  const std::regex splitter(variable);
  std::vector<std::string> parts;
  std::sregex_token_iterator part(text.begin(), text.end(), splitter, -1), end;
  for (; part != end; ++part) parts.push_back(std::regex_replace(part->str(), kBlanks, ""));
  return parts;
}

/// Every source that the program is made of, by its path, without comments.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> codes;
  const fs::path root = checkout("");
  for (const char* room : {"base", "kernels", "nn", "comm", "data", "train", "bench", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const std::string kind = entry.path().extension();
      if (kind != ".cc" && kind != ".h" && kind != ".cu") continue;
      const std::string path = fs::relative(entry.path(), root);
      if (path.starts_with("bench/kernels/") || path.starts_with("bench/peers/")) continue;
      codes[path] = without_comments(read_file(entry.path()));
    }
  }
  return codes;
}

TEST(MessageSources, HoldTheWordsOfWhatCannotBeProvoked) {
  std::string all;
  for (const auto& [file, code] : sources()) {
    for (const std::string& text : literals(code)) all += text + "\n";
  }
  ASSERT_NE(all.find("did you mean"), std::string::npos);
  int looked_for = 0;
  for (const auto& [section, message] : explained_messages()) {
    if (is_provoked(section)) continue;
    for (const std::string& part : fixed_parts(message, "<(n|word|command|text)>")) {
      EXPECT_NE(all.find(part), std::string::npos) << "'" << part << "' of: " << message;
    }
    ++looked_for;
  }
  EXPECT_GT(looked_for, 30);
}

/// The texts of what `code` throws: those between the parentheses of an error's constructor.
std::vector<std::vector<std::string>> thrown(const std::string& code, const std::regex& throwing) {
  std::vector<std::vector<std::string>> all;
  for (std::sregex_iterator found(code.begin(), code.end(), throwing), none; found != none;
       ++found) {
    const auto begin = static_cast<std::size_t>(found->position() + found->length());
    std::size_t end = begin;
    for (int depth = 1; depth > 0 && end < code.size();) {
      if (begins_literal(code, end)) {
        end = end_of_literal(code, end);
        continue;
      }
      depth += code[end] == '(' ? 1 : code[end] == ')' ? -1 : 0;
      ++end;
    }
    all.push_back(literals(code.substr(begin, end - begin)));
  }
  return all;
}

/// Messages that the page need not explain, by their first words.
const std::map<std::string, const char*> kUnexplained{
    {"is of the loss of", "the command line has no other task"},
    {"--best-by accuracy: this task", "the command line has no other task"},
    {"'ringlet predict' needs", "the page has it with <command>"},
    {"the model is for images of", "the command line has compared them before"},
    {"there is no model '", "the command line has checked it before"},
    {"there is no schedule '", "the command line has checked it before"},
    {"'precision' is not", "the page has it with what cannot be read"},
    {"state: the plan has no parameter", "a fault of ours"},
    {") has left NCCL", "comes behind another failure"},
    {"a message of", "a fault of ours"},
    {"sends from", "the command line has compared the devices before"},
    {"loader", "to who calls the library"},
    {"Learner::step: the ranks make", "to who calls the library"},
    {"Learner: label", "to who calls the library"},
    {"Learner: it has failed before", "to who calls the library"},
    {"Classification: the model has", "to who calls the library"},
    {"train: the setup is for", "to who calls the library"},
    {"holds another run; give make_run_setup()", "the command line has looked before"},
    {"there is no sample", "to who calls the library"},
    {"the field '", "to who calls the library"},
    {"there are more than", "to who calls the library"},
    {"there are more stages", "the units have been asked before"},
    {"'pipeline' is not", "the command line has checked it before"},
    {"pipeline", "to who calls the library"},
    {"balance()", "to who calls the library"},
    {"the data set '", "to who calls the library"},
    {"the dry run on the device meta", "to who calls the library"},
    {"DeviceOptions::threads is", "to who calls the library"},
    {"is a state of the optimiser '", "to who calls the library"},
    {"BatchShares", "to who calls the library"},
    {"a batch of positions", "to who calls the library"},
    {"augmentation", "the command line has checked it before"},
    {"random-resized-crop is for images", "to who calls the library"},
    {"bytes, not", "to who calls the library"},
    {"no port of", "stands in another message"},
    {"nothing came from", "stands in another message"},
    {"this machine has no loopback", "stands in another message"},
    {"the connection to process", "stands in another message"},
    {"a picture in the cache is damaged", "to who calls the library"},
    {"not a data set", "the command line has checked it before"},
    {"synthetic: the number", "the command line has checked it before"},
    {"no such kind of device", "a fault of ours"},
    {"cannot be reduced", "the command line has checked the type before"},
    {"no implementation for device", "a fault of ours"},
    {"does not say what model it holds", "to who calls the library"},
    {"run.json does not say", "stands in a report"},
    {"is other data than the run", "stands in a report"},
    {"has the classes", "stands in a report"},
    {"gives numbers that are not finite", "stands in a report"},
    {"holds neither model.safetensors", "stands in a report"},
    {"gives embeddings, and no logits", "stands in a report"},
    {"' has the type of another option", "to who calls the library"},
    {"' is too large or too small", "the page has it with what cannot be read"},
    {"there is no flag", "to who calls the library"},
    {"there is an option '", "to who calls the library"},
    {"there is no option '", "to who calls the library"},
    {"does not hold a state ('format'", "the page has it with another reason"},
};

TEST(MessageSources, ThrowNothingAtAUserThatIsNotExplained) {
  constexpr std::size_t kTelling = 8;  // letters: less may stand anywhere
  std::string page;
  for (const auto& [section, message] : explained_messages()) page += message + "\n";
  std::set<std::string> met;
  int found = 0;
  for (const auto& [file, code] : sources()) {
    // ContractError is for those who call the library, but where a user's flags and variables are.
    const bool users = file.starts_with("train/") || file.starts_with("bench/") ||
                       file.starts_with("app/") || file == "comm/processes/launch.cc" ||
                       file == "comm/processes/run_name.cc" ||
                       file == "comm/processes/environment.h";
    const std::regex throwing(users ? R"((throw |fail<)[a-z:]*[A-Z]\w*Error(>?)\()"
                                    : R"((throw |fail<)[a-z:]*(?!Contract)[A-Z]\w*Error(>?)\()");
    for (const std::vector<std::string>& texts : thrown(code, throwing)) {
      std::string telling;
      for (const std::string& text : texts) {
        for (const std::string& part : fixed_parts(text, R"(\{[^}]*\}|[0-9]+)")) {
          if (telling.size() < kTelling) telling = part.size() > telling.size() ? part : telling;
        }
      }
      if (telling.empty()) continue;
      ++found;
      const auto unexplained =
          std::find_if(kUnexplained.begin(), kUnexplained.end(),
                       [&](const auto& entry) { return telling.starts_with(entry.first); });
      if (unexplained != kUnexplained.end()) {
        met.insert(unexplained->first);
      } else {
        EXPECT_NE(page.find(telling), std::string::npos)
            << file << " throws '" << telling
            << "', which docs/troubleshooting.md does not explain";
      }
    }
  }
  EXPECT_GT(found, 100);
  for (const auto& [words, why] : kUnexplained) {
    EXPECT_EQ(met.count(words), 1u) << "nothing throws '" << words << "' any more";
  }
}

}  // namespace
}  // namespace ringlet::testing
