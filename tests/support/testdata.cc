#include "tests/support/testdata.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringlet::testing {

namespace fs = std::filesystem;

// A test program is tests/ROOM/ROOM_tests in its build's folder.
std::string built(const std::string& file) {
  static const fs::path folder =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path();
  return folder / file;
}

std::string checkout(const std::string& file) {
  static const fs::path folder = [] {
    const char* brought =
        std::getenv("RINGLET_CHECKOUT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    std::string written;
    if (brought == nullptr) std::getline(std::ifstream(built("tests/checkout")), written);
    return brought == nullptr ? written : std::string(brought);
  }();
  return folder / file;
}

std::string testdata(const std::string& file) { return checkout("tests/testdata/" + file); }

}  // namespace ringlet::testing
