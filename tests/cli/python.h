// Python scripts that look at what Ringlet wrote. A script ends with 77 where a module that it
// needs is not installed, and the shell with 127 where Python is not; the test is then skipped.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/cli/program.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {

struct PythonOutcome {
  int code = -1;
  std::string output;  ///< stdout and stderr
  bool lacks_a_module() const { return code == 77 || code == 127; }
};

/// The interpreter with the packages of scripts/setup --dev, or the system's where there is none.
inline std::string python_with_tools() {
  const std::string own = checkout(".deps/python/bin/python");
  return std::filesystem::exists(own) ? own : "python3";
}

/// Runs a script of tests/cli. No argument may hold a space or a quote.
inline PythonOutcome run_python(const std::string& interpreter, const std::string& script,
                                const Arguments& arguments) {
  std::string command = interpreter + " " + checkout("tests/cli/" + script);
  for (const std::string& argument : arguments) command += " " + argument;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed for " + command);
  PythonOutcome outcome;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

}  // namespace ringlet::testing
