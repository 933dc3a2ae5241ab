#include "tests/cuda_stand_in/planner.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

extern char** environ;

namespace ringlet::stand_in {

namespace {

/// Beside this library.
std::string program() {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&ask), &here);
  const std::string file = here.dli_fname;
  return file.substr(0, file.rfind('/')) + "/planner";
}

/// The program, and the pipes to it and back. It ends with this process, whose ends close.
class Planner {
 public:
  Planner() {
    std::array<int, 2> there{}, back{};
    if (pipe2(there.data(), O_CLOEXEC) != 0 || pipe2(back.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipes to cuDNN's planner");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, there[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, back[1], STDOUT_FILENO);
    std::string file = program();
    std::array<char*, 2> arguments = {file.data(), nullptr};
    pid_t child = 0;
    const int status =
        posix_spawn(&child, file.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(there[0]);
    close(back[1]);
    if (status != 0) throw std::runtime_error("cannot start " + file);
    to_ = there[1];
    from_ = back[0];
  }

  Answer ask(const Question& question, void* values) {
    const std::lock_guard lock(mutex_);
    put(&question, sizeof question);
    put(values, static_cast<std::size_t>(question.bytes));
    Answer answer;
    take(&answer, sizeof answer);
    take(values, static_cast<std::size_t>(answer.bytes));
    return answer;
  }

 private:
  void put(const void* data, std::size_t bytes) {
    for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t sent = write(to_, at, bytes);
      require_alive(sent);
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    }
  }
  void take(void* data, std::size_t bytes) {
    for (auto* at = static_cast<char*>(data); bytes > 0;) {
      const ssize_t came = read(from_, at, bytes);
      require_alive(came);
      at += came;
      bytes -= static_cast<std::size_t>(came);
    }
  }
  static void require_alive(ssize_t moved) {
    if (moved <= 0) throw std::runtime_error("cuDNN's planner has ended");
  }

  std::mutex mutex_;
  int to_ = -1, from_ = -1;
};

}  // namespace

bool wants_real_plans() {
  const char* said = std::getenv("RINGLET_STAND_IN_PLANNER");  // NOLINT(concurrency-mt-unsafe)
  return said != nullptr && std::string_view(said) == "cudnn";
}

Answer ask(const Question& question, void* values) {
  static Planner planner;
  return planner.ask(question, values);
}

std::string last_refusal() {
  std::array<char, 512> text{};
  Question question{.call = Question::explain};
  question.bytes = std::ssize(text);
  ask(question, text.data());
  return text.data();
}

}  // namespace ringlet::stand_in
