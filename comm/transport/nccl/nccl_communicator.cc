#include "comm/transport/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// NCCL takes some microseconds to enqueue a group and some seconds to connect: ask often at first.
void pause(int asked) {
  constexpr int kOften = 1000;
  if (asked < kOften) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclFunctions& nccl, CallGate& gate,
                                   const ncclUniqueId& id, NcclRank rank, bool blocking)
    : nccl_(nccl), gate_(gate), rank_(std::move(rank)) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  try {
    settle("ncclCommInitRankConfig", call([&] {
             return nccl_.ncclCommInitRankConfig(&handle_, rank_.world.size, id, rank_.world.rank,
                                                 &config);
           }));
  } catch (const std::exception& error) {
    rank_.give_up(error.what());
    abort();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (is_aborted()) return;
  try {
    rank_.throw_if_aborted();
    settle("ncclCommFinalize", call([this] { return nccl_.ncclCommFinalize(handle_); }));
    call([this] { return nccl_.ncclCommDestroy(std::exchange(handle_, nullptr)); });
  } catch (const std::exception& error) {  // a rank has failed, or does not come to its end
    rank_.give_up(error.what());           // the others can call NCCL no more: they hear why
    abort();
  }
}

/// Returns when the call that gave `result` is done.
void NcclCommunicator::settle(const char* what, ncclResult_t result) {
  const Clock::time_point begin = Clock::now();
  for (int asked = 0; result == ncclInProgress; ++asked) {
    rank_.throw_if_aborted();
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > rank_.timeout_seconds()) {
      throw TimeoutError(
          fmt::format("rank {} ({}) waited {:g} s in {} for the other ranks; look for what keeps "
                      "them, or allow more time with --comm-timeout SECONDS",
                      rank_.number, rank_.device, rank_.timeout_seconds(), what));
    }
    pause(asked);
    const ncclResult_t asking =
        call([this, &result] { return nccl_.ncclCommGetAsyncError(handle_, &result); });
    if (is_failure(asking)) result = asking;
  }
  if (result != ncclSuccess) fail(what, result);
}

void NcclCommunicator::fail(const char* what, ncclResult_t result) {
  rank_.throw_if_aborted();  // then this failure follows from that one
  const std::lock_guard lock(mutex_);
  throw CommError(fmt::format(
      "{} failed on rank {} ({}): {}; NCCL_DEBUG=INFO in the environment makes NCCL say more", what,
      rank_.number, rank_.device, explain(nccl_, result, handle_)));
}

void NcclCommunicator::throw_closed() const {
  rank_.throw_if_aborted();
  throw CommError(fmt::format("rank {} ({}) has left NCCL", rank_.number, rank_.device));
}

std::string NcclCommunicator::asynchronous_error() {
  const CallGate::Pass pass(gate_);
  if (!pass) return {};
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};  // whoever asks must not hang with a thread that hangs in a call
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asking = nccl_.ncclCommGetAsyncError(handle_, &state);
  const ncclResult_t found = is_failure(asking) ? asking : state;
  return is_failure(found) ? explain(nccl_, found, handle_) : std::string();
}

void NcclCommunicator::abort() noexcept {
  gate_.close();
  const std::lock_guard lock(mutex_);
  if (handle_ != nullptr) nccl_.ncclCommAbort(std::exchange(handle_, nullptr));
}

bool NcclCommunicator::is_aborted() {
  const std::lock_guard lock(mutex_);
  return handle_ == nullptr;
}

void* NcclCommunicator::add_memory(void* address, std::size_t bytes) noexcept {
  void* handle = nullptr;
  try {
    settle("ncclCommRegister",
           call([&] { return nccl_.ncclCommRegister(handle_, address, bytes, &handle); }));
  } catch (const std::exception&) {
    return nullptr;
  }
  return handle;
}

void NcclCommunicator::remove_memory(void* handle) noexcept {
  if (handle == nullptr) return;
  try {
    call([&] { return nccl_.ncclCommDeregister(handle_, handle); });
  } catch (const std::exception&) {  // the communicator is gone, and what it knew of the memory
  }
}

}  // namespace ringlet::comm
