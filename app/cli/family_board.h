// FamilyBoard: a page of memory that the processes of `--processes N` share with who started them.
// It holds what must be known also of a process that can say nothing any more:
//   - whether one of them has told the user of an error: the first that wants to does, so the user
//     reads one, whatever happens at the same time;
//   - why a process has not become the program;
//   - whether all have come together. Before that a process may die unnoticed by the others, and
//     none has begun anything.
#pragma once

#include <atomic>

namespace ringlet::app {

class FamilyBoard {
 public:
  /// A new one. Throws CommError.
  FamilyBoard();
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
  /// `error` is errno's, from exec().
  void note_not_started(int error) { page_->not_started = error; }
  int not_started() const { return page_->not_started; }

 private:
  struct Page {
    std::atomic<bool> error_told;
    std::atomic<bool> all_came;
    std::atomic<int> not_started;  // 0: no
  };
  explicit FamilyBoard(Page* page) : page_(page) {}

  int descriptor_ = -1;  // of who made it
  Page* page_;           // fresh memory of the kernel is zero: nothing has happened
};

/// inherited()'s claim_error(); true for a process that nobody has started as one of several.
bool may_tell_error();

}  // namespace ringlet::app
