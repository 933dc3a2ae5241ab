#include "bench/all_reduce/read_all.h"

namespace ringlet::bench {

std::vector<ReadLoop> read_loops() {
  std::vector<ReadLoop> loops;
  for (const auto isa : kInstructionSets) {  // the widest first
    if (isa > widest_instruction_set()) continue;
    loops.insert(loops.begin(),
                 for_instruction_set(isa, [](auto set) { return read_loop_of(set); }));
  }
  return loops;
}

std::uint64_t read_all(const void* data, std::int64_t bytes) {
  static const auto read = read_loops().front().read;
  return read(data, bytes);
}

}  // namespace ringlet::bench
