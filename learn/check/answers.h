// answers.toml: what a learner has read off a run. Of TOML it has lines of `key = value`: a number,
// a list of whole numbers, or a text.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "learn/check/verdict.h"

namespace ringlet::learn {

/// What is wrong with a chapter's answers, or with one of them.
struct Wrong : std::runtime_error {
  Wrong(Verdict the_verdict, const std::string& words)
      : std::runtime_error(words), verdict(the_verdict) {}
  Verdict verdict;
};

class Answers {
 public:
  /// Throws Wrong naming the line.
  explicit Answers(const std::filesystem::path& file);

  /// Throw Wrong where the answer is missing or of another kind.
  double number(const std::string& key) const;
  std::vector<int> list(const std::string& key) const;
  std::string text(const std::string& key) const;

 private:
  const std::string& value(const std::string& key) const;

  std::map<std::string, std::string> values_;
};

/// Compares a number, which may be off by a share of `right`. `how`: where to look for it.
void require_near(const Answers& answers, const std::string& key, double right, double share,
                  const std::string& how);

/// What each chapter's answers have to be, by the learner's own run, of which `folder` has the
/// files. They return the words of a pass and throw Wrong.
std::string check_look(const Answers& answers, const std::filesystem::path& trace);
std::string check_cost_answers(const Answers& answers, const std::filesystem::path& folder);
std::string check_gap(const Answers& answers, const std::filesystem::path& folder);

}  // namespace ringlet::learn
