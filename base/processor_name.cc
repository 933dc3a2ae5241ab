#include "base/processor_name.h"

#include <cstddef>
#include <fstream>
#include <istream>

namespace ringlet {

std::string processor_name_in(std::istream& cpuinfo) {
  std::string maker, core;
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) maker = value;
    if (line.starts_with("CPU part") && core.empty()) core = value;
  }
  return core.empty() ? "processor" : "ARM " + maker + "-" + core;
}

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return processor_name_in(cpuinfo);
}

}  // namespace ringlet
