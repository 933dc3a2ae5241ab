#include "app/cli/family_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "comm/core/errors.h"
#include "comm/processes/launch.h"
#include "comm/processes/message.h"

namespace ringlet::app {

namespace {

constexpr const char* kVariable = "RINGLET_BOARD";  // its descriptor

[[noreturn]] void fail() {
  throw comm::CommError(
      fmt::format("the processes cannot be started: {}; look at this machine's limits (ulimit -a)",
                  std::generic_category().message(errno)));
}

/// Null if that fails.
void* map(int descriptor, std::size_t bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return address == MAP_FAILED ? nullptr : address;
}

/// The descriptor that the variable names, or -1.
int inherited_descriptor() {
  const std::string text = comm::environment_variable(kVariable).value_or("");
  int descriptor = -1;
  std::from_chars(text.data(), text.data() + text.size(), descriptor);
  return descriptor;
}

}  // namespace

std::size_t FamilyBoard::bytes_for(int processes) {
  return sizeof(Page) + static_cast<std::size_t>(processes) * sizeof(Names);
}

FamilyBoard::FamilyBoard(int processes)
    : descriptor_(::memfd_create("ringlet board", MFD_CLOEXEC)), bytes_(bytes_for(processes)) {
  if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) fail();
  page_ = static_cast<Page*>(map(descriptor_, bytes_));
  if (page_ == nullptr) fail();
  page_->processes = processes;
}

FamilyBoard::~FamilyBoard() {
  ::munmap(page_, bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

FamilyBoard* FamilyBoard::inherited() {
  static const std::unique_ptr<FamilyBoard> board = []() -> std::unique_ptr<FamilyBoard> {
    const int descriptor = inherited_descriptor();
    struct stat status {};
    // The variable may be a stranger's: only memory of this size that has no file is a board.
    if (::fcntl(descriptor, F_GET_SEALS) < 0 || ::fstat(descriptor, &status) != 0 ||
        status.st_size < static_cast<off_t>(sizeof(Page))) {
      return nullptr;
    }
    const auto bytes = static_cast<std::size_t>(status.st_size);
    void* page = map(descriptor, bytes);
    ::close(descriptor);
    if (page == nullptr) return nullptr;
    auto board = std::unique_ptr<FamilyBoard>(new FamilyBoard(static_cast<Page*>(page), bytes));
    return bytes == bytes_for(board->page_->processes) ? std::move(board) : nullptr;
  }();
  return board.get();
}

void FamilyBoard::hand_down() const {
  ::fcntl(descriptor_, F_SETFD, 0);  // stays open in the program
  // NOLINTNEXTLINE(concurrency-mt-unsafe): behind fork() there is one thread
  ::setenv(kVariable, std::to_string(descriptor_).c_str(), 1);
}

FamilyBoard::Names* FamilyBoard::names_of(int process) const {
  return reinterpret_cast<Names*>(page_ + 1) + process;
}

void FamilyBoard::note_ranks(int process, const std::string& names) {
  if (process < 0 || process >= page_->processes) return;
  Names& noted = *names_of(process);
  const std::string kept = comm::shortened(names, sizeof(noted.text) - 1);
  std::copy(kept.begin(), kept.end(), noted.text);
  noted.are_there = true;
}

std::string FamilyBoard::ranks_of(int process) const {
  const Names& noted = *names_of(process);
  return noted.are_there ? noted.text : "";
}

bool may_tell_error() {
  FamilyBoard* board = FamilyBoard::inherited();
  return board == nullptr || board->claim_error();
}

}  // namespace ringlet::app
