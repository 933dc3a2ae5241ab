// Ranks as processes that the program forks itself, with memory that all of them share.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace ringlet::bench::peers {

/// Zeroed memory that this process and those it forks afterwards share. Throws std::system_error.
class ForkedMemory {
 public:
  explicit ForkedMemory(std::size_t bytes);
  ~ForkedMemory();
  ForkedMemory(const ForkedMemory&) = delete;
  ForkedMemory& operator=(const ForkedMemory&) = delete;

  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
};

/// Keeps this thread and those that it starts on one of the processors that it may use: rank 0 on
/// the first, and so on, from the start again where ranks outnumber them.
void bind_to_processor(int rank);

/// Moves this process to the network of the machine `rank` that scripts/machines plays, by the
/// processes that MACHINE_PIDS names, and returns that machine's address. Throws std::runtime_error
/// where there is none.
std::string enter_machine(int rank);

/// Runs `run(rank)` in `ranks` processes and waits for all. Throws std::runtime_error with the rank
/// and the message of the first that failed; the others, which would wait for it for ever, are
/// killed. They die with this process, too. To be called while this process has one thread and
/// nothing unwritten on stdout.
void run_forked(int ranks, const std::function<void(int rank)>& run);

}  // namespace ringlet::bench::peers
