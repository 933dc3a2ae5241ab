#include "train/loop/replica_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "comm/core/errors.h"
#include "train/reports/failure.h"

namespace ringlet::train {

namespace {

constexpr std::chrono::milliseconds kLook(100);  // for an abort, of which nobody tells

template <class T>
bool is(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const T&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void ReplicaWatch::started(int rank) {
  const std::lock_guard lock(mutex_);
  running_.insert(rank);
}

void ReplicaWatch::ended(int rank) {
  const std::lock_guard lock(mutex_);
  running_.erase(rank);
  changed_.notify_one();
}

void ReplicaWatch::failed(int rank, std::exception_ptr error) {
  // Where the world has been aborted for another rank, what fails here follows from that: a file in
  // a folder, say, that rank 0 has taken away since. Errors of communication know that themselves.
  const auto cause = root_cause();
  if (cause && cause->rank != rank && !is<comm::CommError>(error)) {
    error = std::make_exception_ptr(comm::Aborted(*cause));
  }
  const std::lock_guard lock(mutex_);
  Failure& kept = is<comm::Aborted>(error) ? secondary_ : root_;
  if (!kept.error) kept = {std::move(error), rank};
  changed_.notify_one();
}

void ReplicaWatch::wait() {
  const auto all_ended = [this] { return running_.empty(); };
  std::unique_lock lock(mutex_);
  if (execution_.on_hang) {
    while (!changed_.wait_for(lock, kLook, [&] { return all_ended() || shown().error; }) &&
           !root_cause()) {
    }
    const double waited = wait_for_end(lock);
    if (all_ended()) return;
    const std::string message = explain_hang(waited);
    lock.unlock();
    execution_.on_hang(message);
    return;
  }
  changed_.wait(lock, all_ended);
}

/// Returns when all have ended, or are not to be waited for any more: the seconds that this took.
double ReplicaWatch::wait_for_end(std::unique_lock<std::mutex>& lock) {
  constexpr double kForHeld = 0.5;  // seconds, in which a call that returns at once has returned
  const comm::Transport& transport = group_.transport(group_.first_rank());
  const Stopwatch watch;
  const auto all_ended = [this] { return running_.empty(); };
  while (watch.seconds() < execution_.hang_grace) {
    const std::chrono::duration<double> left(execution_.hang_grace - watch.seconds());
    if (changed_.wait_for(lock, std::min<std::chrono::duration<double>>(left, kLook), all_ended)) {
      return watch.seconds();
    }
    if (watch.seconds() >= kForHeld && transport.is_held()) {
      return std::round(10 * watch.seconds()) / 10;
    }
  }
  return execution_.hang_grace;
}

void ReplicaWatch::rethrow() const {
  const Failure& failure = shown();
  if (!failure.error) return;
  const std::string name = group_.size() > 1 ? name_of(failure.rank) + ": " : std::string();
  try {
    std::rethrow_exception(failure.error);
  } catch (const comm::CommError&) {
    throw;  // names the ranks itself
  } catch (const RunError&) {
    throw;
  } catch (const comm::Aborted& aborted) {  // what it follows from may have been lost on a stream
    const comm::RootCause& cause = aborted.cause();
    if (group_.size() == 1 || !group_.holds(cause.rank)) throw;
    throw Error(name_of(cause.rank) + ": " + cause.message, aborted.where());
  } catch (const Error& error) {
    throw Error(name + error.what(), error.where());
  } catch (...) {
    throw Error(name + message_of_current_exception());
  }
}

std::string ReplicaWatch::name_of(int rank) const {
  if (group_.names().are_set()) return group_.names().of(rank);
  return fmt::format(
      "replica {} ({})", rank,
      execution_.devices[static_cast<std::size_t>(rank - group_.first_rank())].to_string());
}

std::optional<comm::RootCause> ReplicaWatch::root_cause() const {
  return group_.transport(group_.first_rank()).root_cause();
}

std::string ReplicaWatch::explain_hang(double seconds) const {
  std::vector<std::string> names;
  for (const int rank : running_) names.push_back(name_of(rank));
  std::string hanging =
      fmt::format("{:g} s later still not ended: {}", seconds, fmt::join(names, ", "));
  try {
    rethrow();
  } catch (...) {
    return message_of_current_exception() + "; " + hanging;
  }
  if (const auto cause = root_cause()) return cause->message + "; " + hanging;
  return hanging;
}

}  // namespace ringlet::train
