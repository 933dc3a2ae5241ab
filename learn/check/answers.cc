#include "learn/check/answers.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace ringlet::learn {

namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

[[noreturn]] void fail_answer(const std::string& key, const char* wanted) {
  throw Wrong(Verdict::not_written, fmt::format("{} is to be {}", key, wanted));
}

}  // namespace

Answers::Answers(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string::npos) {
      throw Wrong(Verdict::no_build, fmt::format("line {}: there is no '='", number));
    }
    values_[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
}

const std::string& Answers::value(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    throw Wrong(Verdict::not_written, fmt::format("there is no line '{} = ...'", key));
  }
  return found->second;
}

double Answers::number(const std::string& key) const {
  std::istringstream input(value(key));
  double number = 0;
  if (!(input >> number) || !(input >> std::ws).eof() || !std::isfinite(number)) {
    fail_answer(key, "a number");
  }
  return number;
}

std::vector<int> Answers::list(const std::string& key) const {
  std::string text = value(key);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    fail_answer(key, "a list, as [2, 3, 0, 1]");
  }
  std::istringstream input(text.substr(1, text.size() - 2));
  std::vector<int> numbers;
  for (std::string item; std::getline(input, item, ',');) {
    std::istringstream one(item);
    int number = 0;
    if (!(one >> number) || !(one >> std::ws).eof()) fail_answer(key, "a list of whole numbers");
    numbers.push_back(number);
  }
  if (numbers.empty()) fail_answer(key, "a list that is not empty");
  return numbers;
}

std::string Answers::text(const std::string& key) const {
  const std::string& quoted = value(key);
  if (quoted.size() < 3 || quoted.front() != '"' || quoted.back() != '"') {
    fail_answer(key, "a text in quotation marks");
  }
  return quoted.substr(1, quoted.size() - 2);
}

void require_near(const Answers& answers, const std::string& key, double right, double share,
                  const std::string& how) {
  const double given = answers.number(key);
  if (std::abs(given - right) <= share * std::abs(right)) return;
  throw Wrong(Verdict::wrong_values,
              fmt::format("{} = {:g} is not what your run has: {}", key, given, how));
}

}  // namespace ringlet::learn
