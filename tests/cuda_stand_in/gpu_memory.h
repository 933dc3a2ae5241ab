// Memory of GPUs. The host cannot touch it: a GPU's pages are open only while the stand-in runs
// work that reaches them. Whoever touches them at another time ends the process, and is told of.
// They are then open for all threads, so what a thread does beside such work of another is missed.
#pragma once

#include <cstddef>
#include <set>

namespace ringlet::stand_in {

/// Bytes of 0xFF, which are NaN in each type of float. Null where there is no more.
void* allocate_on(int gpu, std::size_t bytes);
void free_on(int gpu, void* address, std::size_t bytes);

/// While it lives, the memory of these GPUs is open. Any thread.
class OpenMemory {
 public:
  explicit OpenMemory(std::set<int> gpus);
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

 private:
  std::set<int> gpus_;
  bool before_;
};

}  // namespace ringlet::stand_in
