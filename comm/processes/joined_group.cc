#include "comm/processes/joined_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/processors.h"
#include "comm/core/rank_text.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/sealed_memory.h"

namespace ringlet::comm {

namespace {

constexpr const char* kWish = "wish to stop";

/// Replicas and processes come first: whatever else differs may follow from them.
Plan agreed_plan(const ProcessPosition& position, const ProcessGroupOptions& options) {
  Plan plan{{"the number of processes", std::to_string(position.processes)},
            {"the replicas of a process", std::to_string(options.replicas)},
            {"the transport", name_of(options.transport)}};
  plan.insert(plan.end(), options.agreed.begin(), options.agreed.end());
  return plan;
}

SealedMemory make_shared_memory(std::int64_t bytes) {
  try {
    return SealedMemory::make("ringlet", bytes);
  } catch (const std::exception& error) {
    throw CommError(
        fmt::format("memory for several processes cannot be made: {}; use --transport gloo, or "
                    "--replicas in one process",
                    error.what()));
  }
}

SealedMemory map_shared_memory(const std::optional<HandedMemory>& handed, std::int64_t bytes,
                               int from) {
  try {
    if (!handed) throw std::runtime_error("it has not come");
    return SealedMemory::map(handed->file, bytes, SealedMemory::Pages::touched);
  } catch (const std::exception& error) {
    throw CommError(
        fmt::format("the memory that process {} shares cannot be used: {}; start all processes "
                    "with the same program, or use --replicas in one process",
                    from, error.what()));
  }
}

}  // namespace

const char* name_of(ProcessTransport transport) {
  switch (transport) {
    case ProcessTransport::shm:
      return "shm";
    case ProcessTransport::gloo:
      return "gloo";
    case ProcessTransport::mpi:
      return "mpi";
    case ProcessTransport::automatic:
      break;
  }
  return "auto";
}

JoinedGroup::JoinedGroup(const ProcessPosition& position, const ProcessGroupOptions& options)
    : Group(position.process * options.replicas, options.replicas,
            position.processes * options.replicas),
      local_(
          options.replicas,
          {.first_rank = first_rank(),
           .world_size = size(),
           .look_elsewhere = [this](int rank, int channel) { return remote_->of(rank, channel); }}),
      on_names_(options.on_names) {
  RendezvousOptions joining{.replicas = options.replicas,
                            .timeout_seconds = options.timeout_seconds,
                            .agreed = agreed_plan(position, options)};
  joining.on_abort = [this](const RootCause& cause) { stop_ranks(cause); };
  joining.status = [this] { return status_of_ranks(); };
  joining.on_value = [heard = options.on_wish](const std::string& key, const std::string& value) {
    if (key == kWish) heard(std::stoi(value));
  };
  joining.remind = options.warn;
  joining.name_ranks = [this](const std::vector<int>& ranks) { return names().of(ranks); };
  joining.machine = options.machine;
  joining.host = options.host;
  joining.beat = options.beat;
  rendezvous_ = std::make_unique<Rendezvous>(position, joining);
  remote_ = std::make_unique<RemoteStatus>(*rendezvous_, replicas());
  try {
    find_machines(options.transport);
  } catch (...) {
    JoinedGroup::abort(first_rank(), message_of_current_exception());
    throw_failure();
  }
}

JoinedGroup::~JoinedGroup() {
  forget_wakers();
  rendezvous_.reset();
}

const Site& JoinedGroup::site() const {
  return rendezvous_->sites()[static_cast<std::size_t>(process())];
}

const std::string& JoinedGroup::address() const { return site().address; }

int JoinedGroup::machines() const {
  const std::vector<Site>& sites = rendezvous_->sites();
  const auto last = std::max_element(sites.begin(), sites.end(), [](const Site& a, const Site& b) {
    return a.machine < b.machine;
  });
  return last->machine + 1;
}

bool JoinedGroup::on_this_machine(int rank) const {
  return rendezvous_->sites()[static_cast<std::size_t>(process_of(rank))].machine == site().machine;
}

std::vector<int> JoinedGroup::processes_here() const {
  std::vector<int> here;
  for (int other = 0; other < processes(); ++other) {
    if (on_this_machine(other * replicas())) here.push_back(other);
  }
  return here;
}

std::string JoinedGroup::hosts() const {
  std::string text;
  for (int machine = 0; machine < machines() && machines() > 1; ++machine) {
    std::vector<int> ranks;
    std::string host;
    for (int rank = 0; rank < size(); ++rank) {
      const Site& other = rendezvous_->sites()[static_cast<std::size_t>(process_of(rank))];
      if (other.machine != machine) continue;
      ranks.push_back(rank);
      host = other.host;
    }
    text += fmt::format("{}{} {} on {}", text.empty() ? "" : ", ", text_of(ranks),
                        ranks.size() == 1 ? "is" : "are", host);
  }
  return text;
}

/// Tells the ranks which machine they are on. Throws where `transport` does not reach the others.
void JoinedGroup::find_machines(ProcessTransport transport) {
  std::vector<int> machine_of;
  for (const Site& other : rendezvous_->sites()) {
    machine_of.insert(machine_of.end(), static_cast<std::size_t>(replicas()), other.machine);
  }
  local_.set_machines(std::move(machine_of));
  if (machines() == 1 || transport != ProcessTransport::shm) return;
  throw CommError(
      fmt::format("--transport shm joins processes of one machine, and {}; use --transport gloo, "
                  "mpi or auto",
                  hosts()));
}

void JoinedGroup::name_ranks(const RankNames::Words& words) {
  Group::name_ranks(words);
  local_.name_ranks(words);
  std::vector<int> own;
  for (int rank = first_rank(); holds(rank); ++rank) own.push_back(rank);
  on_names_(words(own));
}

std::string JoinedGroup::status_of_ranks() {
  std::vector<RankStatus> status;
  for (int number = 0; number < local_.channels(); ++number) {
    for (int rank = first_rank(); holds(rank); ++rank) {
      status.push_back(*local_.channel(rank, number).look_at(rank));
    }
  }
  return encode(status);
}

std::string JoinedGroup::agree(const std::string& key, const std::optional<std::string>& mine,
                               double timeout_seconds) {
  const int times = ++agreed_[key];
  const std::string numbered = times == 1 ? key : fmt::format("{} ({})", key, times);
  if (mine) rendezvous_->set(numbered, *mine);
  try {
    return rendezvous_->get(numbered, timeout_seconds);
  } catch (const TimeoutError& error) {
    const Transport& own = local_.transport(first_rank());
    throw TimeoutError(text_of_silent(own, look_at_all(own)) + error.what());
  }
}

void JoinedGroup::tell_wish(int signal) { rendezvous_->set(kWish, std::to_string(signal)); }

std::shared_ptr<void> JoinedGroup::share(const std::string& key, std::int64_t bytes,
                                         double timeout_seconds) {
  const std::vector<int> here = processes_here();
  const int first = here.front();
  const std::string ready =
      machines() == 1 ? key : fmt::format("{} of machine {}", key, site().machine);
  if (!mesh_) mesh_ = std::make_unique<MemoryMesh>(*rendezvous_, here, replicas(), timeout_seconds);
  if (process() == first) {
    const auto made = std::make_shared<SealedMemory>(make_shared_memory(bytes));
    for (const int other : here) {
      if (other != first) mesh_->hand_over(other, {.bytes = bytes}, made->descriptor());
    }
    agree(ready, "handed over", timeout_seconds);
    return {made, made->data()};
  }
  agree(ready, std::nullopt, timeout_seconds);
  const std::optional<HandedMemory> handed = mesh_->take(first);
  if (!handed && await_explanation()) throw Aborted(*root_cause());
  const auto mapped = std::make_shared<SealedMemory>(map_shared_memory(handed, bytes, first));
  return {mapped, mapped->data()};
}

int JoinedGroup::processors(double timeout_seconds) {
  std::ostringstream mine;
  for (const int processor : allowed_processors()) mine << processor << ' ';
  const auto key = [times = ++asked_for_processors_](int of) {
    return fmt::format("processors of process {} ({})", of, times);
  };
  rendezvous_->set(key(process()), mine.str());
  std::set<int> all;
  for (const int other : processes_here()) {
    std::istringstream theirs(rendezvous_->get(key(other), timeout_seconds));
    for (int processor = 0; theirs >> processor;) all.insert(processor);
  }
  return std::min(static_cast<int>(all.size()), processor_quota());
}

bool JoinedGroup::abort(int rank, const std::string& message) noexcept {
  const bool first = local_.abort(rank, message);
  // Also when a rank's local transport was the first to know: only from here do the others learn.
  rendezvous_->abort(*local_.root_cause());
  wake_all();
  return first;
}

void JoinedGroup::stop_ranks(const RootCause& cause) noexcept {
  local_.abort(cause.rank, cause.message);
  wake_all();
}

void JoinedGroup::on_abort(const std::function<void()>& wake) {
  {
    const std::lock_guard lock(wakers_mutex_);
    wakers_.push_back(wake);
  }
  if (aborted()) wake();
}

void JoinedGroup::forget_wakers() {
  const std::lock_guard lock(wakers_mutex_);
  wakers_.clear();
}

void JoinedGroup::wake_all() noexcept {
  const std::lock_guard lock(wakers_mutex_);
  for (const auto& wake : wakers_) wake();
}

bool JoinedGroup::await_explanation() const {
  constexpr std::chrono::seconds kLongest(3);  // other ranks may first ask around for a report
  constexpr std::chrono::milliseconds kLook(2);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!aborted() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLook);
  }
  return aborted();
}

void JoinedGroup::throw_failure() {
  const bool tells = tells_user();
  const RootCause cause = rendezvous_->root_cause().value_or(
      local_.root_cause().value_or(RootCause{first_rank(), "an unknown error"}));
  if (tells) throw CommError(cause.message);
  throw Aborted(cause);
}

}  // namespace ringlet::comm
