#include "comm/processes/process_group.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "comm/transport/gloo/gloo_transport.h"
#include "comm/transport/shm/shm_transport.h"
#include "kernels/exception_message.h"

namespace ringlet::comm {

namespace {

/// Replicas and processes come first: whatever else differs may follow from them.
Plan agreed_plan(const ProcessPlace& place, const ProcessGroupOptions& options) {
  Plan plan{{"the number of processes", std::to_string(place.processes)},
            {"the replicas of a process", std::to_string(options.replicas)},
            {"the transport", name_of(options.transport)}};
  plan.insert(plan.end(), options.agreed.begin(), options.agreed.end());
  return plan;
}

}  // namespace

const char* name_of(ProcessTransport transport) {
  return transport == ProcessTransport::shm ? "shm" : "gloo";
}

ProcessGroup::ProcessGroup(const ProcessPlace& place, const ProcessGroupOptions& options)
    : Group(place.process * options.replicas, options.replicas, place.processes * options.replicas),
      local_(options.replicas, {.first_rank = first_rank(),
                                .world_size = size(),
                                .look_elsewhere = [this](int rank) { return remote_->of(rank); }}) {
  RendezvousOptions joining{.replicas = options.replicas,
                            .timeout_seconds = options.timeout_seconds,
                            .agreed = agreed_plan(place, options)};
  joining.on_abort = [this](const RootCause& cause) { stop_ranks(cause); };
  joining.status = [this] { return status_of_ranks(); };
  rendezvous_ = std::make_unique<Rendezvous>(place, joining);
  remote_ = std::make_unique<RemoteStatus>(*rendezvous_, replicas());
  try {
    transports_ = options.transport == ProcessTransport::shm
                      ? connect_shm(*this, options.timeout_seconds)
                      : connect_gloo(*this, options.timeout_seconds);
  } catch (...) {
    abort(first_rank(), message_of_current_exception());
    throw_failure();
  }
}

ProcessGroup::~ProcessGroup() { rendezvous_.reset(); }

Transport& ProcessGroup::transport(int rank) {
  require(holds(rank), "ProcessGroup::transport", "the rank is in another process");
  return *transports_[static_cast<std::size_t>(rank - first_rank())];
}

std::string ProcessGroup::status_of_ranks() {
  std::vector<RankStatus> status;
  for (int rank = first_rank(); holds(rank); ++rank) {
    status.push_back(*local_.transport(rank).look_at(rank));
  }
  return encode(status);
}

std::string ProcessGroup::agree(const std::string& key, const std::optional<std::string>& mine,
                                double timeout_seconds) {
  const int times = ++agreed_[key];
  const std::string numbered = times == 1 ? key : fmt::format("{} ({})", key, times);
  if (mine) rendezvous_->set(numbered, *mine);
  return rendezvous_->get(numbered, timeout_seconds);
}

bool ProcessGroup::abort(int rank, const std::string& message) noexcept {
  const bool first = local_.abort(rank, message);
  // Also when a rank's local transport was the first to know: only from here do the others learn.
  rendezvous_->abort(*local_.root_cause());
  wake_all();
  return first;
}

void ProcessGroup::stop_ranks(const RootCause& cause) noexcept {
  local_.abort(cause.rank, cause.message);
  wake_all();
}

void ProcessGroup::on_abort(const std::function<void()>& wake) {
  {
    const std::lock_guard lock(wakers_mutex_);
    wakers_.push_back(wake);
  }
  if (aborted()) wake();
}

void ProcessGroup::wake_all() noexcept {
  const std::lock_guard lock(wakers_mutex_);
  for (const auto& wake : wakers_) wake();
}

bool ProcessGroup::await_explanation() const {
  constexpr std::chrono::seconds kLongest(3);  // other ranks may first ask around for a report
  constexpr std::chrono::milliseconds kLook(2);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!aborted() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLook);
  }
  return aborted();
}

void ProcessGroup::throw_failure() {
  const bool tells = tells_user();
  const RootCause cause = rendezvous_->root_cause().value_or(
      local_.root_cause().value_or(RootCause{first_rank(), "an unknown error"}));
  if (tells) throw CommError(cause.message);
  throw Aborted(cause);
}

}  // namespace ringlet::comm
