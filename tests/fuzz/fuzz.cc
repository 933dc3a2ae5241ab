#include "tests/fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/one_line.h"

namespace ringlet::fuzz {

void promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void check_message(const std::string& message) {
  promise(!message.empty(), "an error says something");
  promise(on_one_line(message) == message, "a message is one line of printable text");
}

}  // namespace ringlet::fuzz

/// NAME_fuzz --write-seeds FOLDER: writes the target's seeds and ends.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count != 3 || std::strcmp((*arguments)[1], "--write-seeds") != 0) return 0;
  const std::filesystem::path folder = (*arguments)[2];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : ringlet::fuzz::seeds()) {
    std::ofstream(folder / ("seed-" + std::to_string(++number)), std::ios::binary) << seed;
  }
  std::exit(0);  // NOLINT(concurrency-mt-unsafe): nothing else runs yet
}
