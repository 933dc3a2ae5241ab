// FamilyBoard: a page of memory that the processes of `--processes N` share with who started them.
// It holds what must be known also of a process that can say nothing any more:
//   - whether one of them has told the user of an error: the first that wants to does, so the user
//     reads one, whatever happens at the same time;
//   - why a process has not become the program;
//   - whether all have come together. Before that a process may die unnoticed by the others, and
//     none has begun anything;
//   - what the ranks of each are called, once that is more than numbers: which stage they have.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace ringlet::app {

class FamilyBoard {
 public:
  /// A new one, for so many processes. Throws CommError.
  explicit FamilyBoard(int processes);
  ~FamilyBoard();
  FamilyBoard(const FamilyBoard&) = delete;
  FamilyBoard& operator=(const FamilyBoard&) = delete;

  /// That of the process that has started this one; null if none has. Any thread.
  static FamilyBoard* inherited();
  /// In a child, before it becomes the program: lets that inherit the board.
  void hand_down() const;

  /// Whether the caller is the first that wants to tell the user of an error.
  bool claim_error() { return !page_->error_told.exchange(true); }
  bool error_told() const { return page_->error_told; }
  void note_all_came() { page_->all_came = true; }
  bool all_came() const { return page_->all_came; }
  /// Of a process of those that it was made for. Once; what is long is cut.
  void note_ranks(int process, const std::string& names);
  std::string ranks_of(int process) const;  ///< "" as long as that is not known
  /// `error` is errno's, from exec().
  void note_not_started(int error) { page_->not_started = error; }
  int not_started() const { return page_->not_started; }

 private:
  struct Page {
    std::atomic<bool> error_told;
    std::atomic<bool> all_came;
    std::atomic<int> not_started;  // 0: no
    std::atomic<int> processes;
  };
  struct Names {
    std::atomic<bool> are_there;
    char text[511];  // ends with a zero
  };
  FamilyBoard(Page* page, std::size_t bytes) : page_(page), bytes_(bytes) {}
  static std::size_t bytes_for(int processes);
  Names* names_of(int process) const;

  int descriptor_ = -1;  // of who made it
  Page* page_;           // fresh memory of the kernel is zero: nothing has happened
  std::size_t bytes_;    // of the page and of each process's names, which follow
};

/// inherited()'s claim_error(); true for a process that nobody has started as one of several.
bool may_tell_error();

}  // namespace ringlet::app
