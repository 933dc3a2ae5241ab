#include "app/cli/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ringlet::app {

double seconds_since_process_start() {
  std::ifstream stat_file("/proc/self/stat");
  std::ifstream uptime_file("/proc/uptime");
  std::string stat;
  double uptime = 0;
  if (!std::getline(stat_file, stat) || !(uptime_file >> uptime)) return 0;
  // The name in brackets may hold blanks; field 22 of proc(5), the start, is the 20th behind it.
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return uptime - std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The kernel's own mark of this program. getrusage() lives on over exec(): it may say how large the
// process was that started us, and so is asked only where there is no /proc.
std::int64_t peak_memory_mib() {
  std::ifstream status("/proc/self/status");
  std::string field;
  std::int64_t kib = 0;
  while (status >> field) {
    if (field == "VmHWM:" && status >> kib) return kib / 1024;
  }
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace ringlet::app
