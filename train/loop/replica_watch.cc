#include "train/loop/replica_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "comm/errors.h"
#include "train/failure.h"

namespace ringlet::train {

namespace {

bool is_secondary(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const comm::Aborted&) {
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
  const std::lock_guard lock(mutex_);
  Failure& kept = is_secondary(error) ? secondary_ : root_;
  if (!kept.error) kept = {std::move(error), rank};
  changed_.notify_one();
}

void ReplicaWatch::wait() {
  constexpr double kLongest = 1e9;  // seconds: what a clock can hold
  const std::chrono::duration<double> grace(std::min(execution_.hang_grace, kLongest));
  const auto all_ended = [this] { return running_.empty(); };
  std::unique_lock lock(mutex_);
  if (execution_.on_hang) {
    constexpr std::chrono::milliseconds kLook(100);  // for an abort, of which nobody tells
    while (!changed_.wait_for(lock, kLook, [&] { return all_ended() || shown().error; }) &&
           !root_cause()) {
    }
    if (changed_.wait_for(lock, grace, all_ended)) return;
    const std::string message = explain_hang();
    lock.unlock();
    execution_.on_hang(message);
    return;
  }
  changed_.wait(lock, all_ended);
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
  } catch (const Error& error) {
    throw Error(name + error.what(), error.where());
  } catch (...) {
    throw Error(name + message_of_current_exception());
  }
}

std::string ReplicaWatch::name_of(int rank) const {
  return fmt::format(
      "replica {} ({})", rank,
      execution_.devices[static_cast<std::size_t>(rank - group_.first_rank())].to_string());
}

std::optional<comm::RootCause> ReplicaWatch::root_cause() const {
  return group_.transport(group_.first_rank()).root_cause();
}

std::string ReplicaWatch::explain_hang() const {
  std::vector<std::string> names;
  for (const int rank : running_) names.push_back(name_of(rank));
  std::string hanging = fmt::format("{:g} s later still not ended: {}", execution_.hang_grace,
                                    fmt::join(names, ", "));
  try {
    rethrow();
  } catch (...) {
    return message_of_current_exception() + "; " + hanging;
  }
  if (const auto cause = root_cause()) return cause->message + "; " + hanging;
  return hanging;
}

}  // namespace ringlet::train
