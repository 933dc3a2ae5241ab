#include "learn/check/learners_file.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "learn/check/lockstep.h"

namespace ringlet::learn {

namespace {

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return name ? name.get() : symbol;
}

/// Of the dynamic linker's message: "FILE: undefined symbol: SYMBOL".
std::string words_of(const std::string& message, std::string_view defines) {
  constexpr std::string_view kUndefined = "undefined symbol: ";
  const std::size_t at = message.find(kUndefined);
  if (at == std::string::npos) return message;
  const std::string symbol = message.substr(at + kUndefined.size());
  const std::string name = without_renaming(demangled(symbol.substr(0, symbol.find(' '))));
  if (name.starts_with("vtable for") || name.find(defines) != std::string::npos) {
    return fmt::format("the file does not define {}", defines);
  }
  return fmt::format("the file uses {}, which is defined nowhere", name);
}

/// A function of the library.
template <class Function>
Function* open_function(const std::string& library, const char* name, std::string_view defines,
                        Board& board) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto why = [] { return std::string(dlerror()); };  // NOLINT: one thread
  if (handle == nullptr) board.conclude(Verdict::no_build, words_of(why(), defines));
  auto* const function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function == nullptr) board.conclude(Verdict::no_build, why());
  return function;
}

}  // namespace

std::string without_renaming(std::string text) {
  constexpr std::string_view kPrefix = "Learners_";
  for (std::size_t at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at)) {
    text.erase(at, kPrefix.size());
  }
  return text;
}

LearnersFile open_learners_file(const std::string& library, std::string_view defines,
                                Board& board) {
  auto* const tell =
      open_function<void(comm::Strategy&)>(library, "learners_strategy", defines, board);
  LearnersFile file;
  tell(file.strategy);
  return file;
}

void run_own_check(const std::string& library, std::string_view defines, Board& board) {
  try {
    open_function<void(Board&)>(library, "check_chapter", defines, board)(board);
  } catch (...) {
    conclude_of_exception(board, -1);
  }
  board.conclude(Verdict::crash, "the check came to no end");
}

}  // namespace ringlet::learn
