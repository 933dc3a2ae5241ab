#include "base/processor_name.h"

#include <cstddef>
#include <fstream>

namespace ringlet {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "processor";
}

}  // namespace ringlet
