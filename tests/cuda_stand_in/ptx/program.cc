#include "tests/cuda_stand_in/ptx/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "tests/cuda_stand_in/ptx/reader.h"
#include "tests/cuda_stand_in/ptx/text.h"

namespace ringlet::ptx {

namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

/// From the brace at `begin` to behind the one that closes it.
std::size_t end_of_braces(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    depth += text[i] == '{';
    depth -= text[i] == '}';
    if (depth == 0) return i + 1;
  }
  unknown("a kernel without an end");
}

}  // namespace

Module::Module(std::string text) : text_(std::move(text)) {
  const std::string_view all = text_;
  constexpr std::string_view kEntry = ".entry ";
  std::size_t end = 0;
  for (std::size_t at = all.find(kEntry); at != std::string_view::npos;
       at = all.find(kEntry, end)) {
    if (entries_.empty()) head_ = all.substr(0, at);
    const std::size_t name = at + kEntry.size();
    const std::size_t name_end =
        std::find_if_not(all.begin() + name, all.end(), is_of_name) - all.begin();
    end = end_of_braces(all, all.find('{', name));
    entries_.emplace_back(all.substr(name, name_end - name), all.substr(at, end - at));
  }
  // .file 3 "/somewhere/kernels/grid/bias.h"
  for (std::size_t at = all.find("\n.file", end); at != std::string_view::npos;
       at = all.find("\n.file", at + 1)) {
    const std::string_view line = trimmed(all.substr(at + 7, all.find('\n', at + 1) - at - 7));
    const auto number =
        static_cast<std::size_t>(integer_of(line.substr(0, line.find_first_of(" \t"))));
    const std::size_t quote = line.find('"');
    files_.resize(std::max(files_.size(), number + 1));
    files_[number] = line.substr(quote + 1, line.rfind('"') - quote - 1);
  }
}

std::vector<std::string> Module::names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : entries_) names.push_back(name);
  return names;
}

std::string_view Module::text_of(std::string_view name) const {
  for (const auto& [own, text] : entries_) {
    if (own == name) return text;
  }
  throw std::out_of_range(fmt::format("no kernel {}", name));
}

Program Module::program(std::string_view name) const {
  const std::string_view text = text_of(name);
  Program program;
  program.name = name;
  Reader reader(program, files_);
  if (const std::size_t at = head_.find("\n.extern .shared"); at != std::string_view::npos) {
    const std::string_view text = head_.substr(at + 9, head_.find(';', at) - at - 9);
    reader.shared_by_launch(trimmed(text));
  }
  for (std::size_t at = head_.find("\n.shared"); at != std::string_view::npos;
       at = head_.find("\n.shared", at + 1)) {
    reader.shared(trimmed(head_.substr(at, head_.find(';', at) - at)));
  }
  const std::size_t open = text.find('('), close = text.find(')'), brace = text.find('{');
  if (open < brace) reader.parameters(text.substr(open + 1, close - open - 1));
  reader.body(text.substr(brace + 1, text.size() - brace - 2));
  return program;
}

}  // namespace ringlet::ptx
