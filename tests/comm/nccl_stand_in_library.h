// The work of the stand-in of NCCL (nccl_stand_in.h) behind the library's functions: communicators,
// groups, messages and collectives between the threads of one process.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/comm/nccl_stand_in.h"

namespace ringlet::comm::stand_in {

struct Message {
  const void* data;
  std::size_t bytes;
  bool taken = false;
};

/// What the ranks have brought to a collective so far.
struct Collective {
  std::string name;
  std::map<int, std::vector<float>> values;  // by rank
  int left = 0;                              // ranks that have their result
};

struct World {
  int size = 0;
  int joined = 0;
  int finalised = 0;
  std::map<std::pair<int, int>, std::deque<Message*>> messages;  // by sender and receiver
  std::map<std::uint64_t, Collective> collectives;               // by number
};

/// One operation of a group.
struct Operation {
  enum Kind { send, receive, all_reduce, reduce, broadcast } kind;
  const void* in;
  void* out;
  std::size_t bytes;
  int peer;
  ncclRedOp_t op;
};

}  // namespace ringlet::comm::stand_in

struct ncclComm {
  std::shared_ptr<ringlet::comm::stand_in::World> world;
  int rank = 0;
  bool is_up = false;      // everybody has come
  bool finalises = false;  // and has not come to its end
  bool broken = false;
  bool aborted = false;
  bool ended = false;
  int calls = 0;    // threads inside a call with it
  int running = 0;  // groups on the stream
  std::uint64_t collectives = 0;
  std::set<void*> registered;
};

namespace ringlet::comm::stand_in {

/// The group that a thread is in.
struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  StandInStream* stream = nullptr;
  std::vector<Operation> operations;
  bool failed = false;  // a call in it: none of it is enqueued
};
inline thread_local Group group;

class Library final : public NcclStandIn {
 public:
  void reset() override {
    const std::lock_guard lock(mutex_);
    comms_.clear();
    worlds_.clear();
    faults_.clear();
    calls_.clear();
    groups_.clear();
    allocated_.clear();
    violation_.clear();
    released_ = false;
  }
  void inject(const NcclFault& fault) override {
    const std::lock_guard lock(mutex_);
    faults_.push_back(fault);
  }
  void release() override {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void break_connection(int rank) override {
    const std::lock_guard lock(mutex_);
    for (const auto& comm : comms_) comm->broken = comm->broken || comm->rank == rank;
  }
  std::vector<NcclCall> calls(int rank) const override {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(rank);
    return found == calls_.end() ? std::vector<NcclCall>() : found->second;
  }
  int hanging() const override {
    const std::lock_guard lock(mutex_);
    return hanging_;
  }
  int running(int rank) const override {
    const std::lock_guard lock(mutex_);
    int running = 0;
    for (const auto& comm : comms_) running += comm->rank == rank ? comm->running : 0;
    return running;
  }
  int communicators() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(
        std::count_if(comms_.begin(), comms_.end(), [](const auto& comm) { return !comm->ended; }));
  }
  int registered() const override {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& comm : comms_) count += comm->ended ? 0 : comm->registered.size();
    return static_cast<int>(count);
  }
  int allocated() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(allocated_.size());
  }
  std::string violation() const override {
    const std::lock_guard lock(mutex_);
    return violation_;
  }

  ncclResult_t initialise(ncclComm** made, int size, const ncclUniqueId& id, int rank) {
    std::unique_lock lock(mutex_);
    auto& world = worlds_[std::string(id.internal, 8)];
    if (!world) world = std::make_shared<World>();
    comms_.push_back(std::make_unique<ncclComm>());
    ncclComm* const comm = comms_.back().get();
    comm->world = world;
    comm->rank = rank;
    *made = comm;
    note({"ncclCommInitRankConfig"}, rank);
    const Inside inside(*this, *comm, "ncclCommInitRankConfig");
    if (world->size != 0 && world->size != size) violate("ranks that differ in their number");
    world->size = size;
    const NcclFault* const fault = find("ncclCommInitRankConfig", rank);
    if (fault != nullptr) return obey(*fault, lock);
    ++world->joined;
    comm->is_up = true;
    return state_of(*comm);
  }

  ncclResult_t ask(ncclComm* comm, ncclResult_t* state) {
    const std::lock_guard lock(mutex_);
    const Inside inside(*this, *comm, "ncclCommGetAsyncError");
    *state = comm->broken ? ncclRemoteError : state_of(*comm);
    return ncclSuccess;
  }

  ncclResult_t finalise(ncclComm* comm) {
    std::unique_lock lock(mutex_);
    note({"ncclCommFinalize"}, comm->rank);
    const Inside inside(*this, *comm, "ncclCommFinalize");
    if (!comm->registered.empty()) violate("ncclCommFinalize with memory registered");
    comm->finalises = true;
    if (const NcclFault* const fault = find("ncclCommFinalize", comm->rank)) {
      return obey(*fault, lock);
    }
    ++comm->world->finalised;
    return state_of(*comm);
  }

  ncclResult_t destroy(ncclComm* comm) {
    const std::lock_guard lock(mutex_);
    note({"ncclCommDestroy"}, comm->rank);
    const Inside inside(*this, *comm, "ncclCommDestroy");
    if (!comm->finalises) violate("ncclCommDestroy before ncclCommFinalize");
    if (comm->running > 0) violate("ncclCommDestroy with work in flight");
    comm->ended = true;
    return ncclSuccess;
  }

  ncclResult_t abort(ncclComm* comm) {
    std::unique_lock lock(mutex_);
    note({"ncclCommAbort"}, comm->rank);
    if (comm->ended) violate("ncclCommAbort of a communicator that has ended");
    for (const auto& other : comms_) {
      if (other->calls > 0) violate("ncclCommAbort while a thread is in another call");
    }
    if (const NcclFault* const fault = find("ncclCommAbort", comm->rank)) {
      obey(*fault, lock);
    }
    comm->aborted = true;
    comm->ended = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return comm->running == 0; });
    return ncclSuccess;
  }

  ncclResult_t add(ncclComm* comm, cudaStream_t handle, const char* name, const void* address,
                   const Operation& operation) {
    const std::lock_guard lock(mutex_);
    auto* const stream = reinterpret_cast<StandInStream*>(handle);
    note({name, address, operation.bytes, operation.peer, stream, groups_[comm->rank] + 1},
         comm->rank);
    const Inside inside(*this, *comm, name);
    if (group.depth == 0) violate(std::string(name) + " outside of a group");
    if (group.comm != nullptr && group.comm != comm) violate("a group of two communicators");
    if (group.stream != nullptr && group.stream != stream) violate("a group on two streams");
    if (comm->finalises) violate(std::string(name) + " after ncclCommFinalize");
    group.comm = comm;
    group.stream = stream;
    group.operations.push_back(operation);
    const NcclFault* const fault = find(name, comm->rank);
    if (fault == nullptr || fault->kind != NcclFault::fails) return ncclSuccess;
    group.failed = true;
    return ncclInternalError;
  }

  static ncclResult_t begin_group() {
    ++group.depth;
    return ncclSuccess;
  }

  ncclResult_t end_group() {
    std::unique_lock lock(mutex_);
    if (group.depth == 0) violate("ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0 || group.comm == nullptr) return ncclSuccess;
    Group made;
    std::swap(made, group);
    ncclComm* const comm = made.comm;
    ++groups_[comm->rank];
    const Inside inside(*this, *comm, "ncclGroupEnd");
    if (made.failed) return ncclInternalError;
    const bool captured = made.stream->is_captured();
    if (const NcclFault* const fault = find("ncclGroupEnd", comm->rank, captured)) {
      if (fault->kind == NcclFault::endless) comm->is_up = false;
      return obey(*fault, lock);
    }
    if (!captured) ++comm->running;
    made.stream->launch([this, comm, captured, operations = std::move(made.operations)]() {
      run(*comm, captured, operations);
    });
    return ncclSuccess;
  }

  ncclResult_t allocate(void** address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    allocated_.insert(*address);
    return ncclSuccess;
  }
  ncclResult_t release_memory(void* address) {
    const std::lock_guard lock(mutex_);
    if (allocated_.erase(address) == 0) violate("ncclMemFree of memory that is not NCCL's");
    for (const auto& comm : comms_) {
      if (!comm->ended && comm->registered.count(address) > 0) violate("freed before deregistered");
    }
    std::free(address);  // NOLINT: what allocate() got
    return ncclSuccess;
  }
  ncclResult_t add_memory(ncclComm* comm, void* address, std::size_t bytes, void** handle) {
    std::unique_lock lock(mutex_);
    note({"ncclCommRegister", address, bytes}, comm->rank);
    const Inside inside(*this, *comm, "ncclCommRegister");
    if (const NcclFault* const fault = find("ncclCommRegister", comm->rank)) {
      return obey(*fault, lock);
    }
    comm->registered.insert(address);
    *handle = address;
    return ncclSuccess;
  }
  ncclResult_t remove_memory(ncclComm* comm, void* handle) {
    const std::lock_guard lock(mutex_);
    note({"ncclCommDeregister", handle}, comm->rank);
    const Inside inside(*this, *comm, "ncclCommDeregister");
    if (comm->registered.erase(handle) == 0) violate("ncclCommDeregister of an unknown handle");
    return ncclSuccess;
  }

 private:
  /// A thread inside a call with a communicator, which may be in one at a time.
  class Inside {
   public:
    Inside(Library& library, ncclComm& comm, const std::string& call) : comm_(comm) {
      if (comm.ended) library.violate(call + " on a communicator that has ended");
      if (++comm.calls > 1) library.violate(call + " while another thread is in a call");
    }
    ~Inside() { --comm_.calls; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    ncclComm& comm_;
  };

  void note(NcclCall call, int rank) { calls_[rank].push_back(std::move(call)); }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  const NcclFault* find(const std::string& call, int rank, bool captured = false) const {
    for (const NcclFault& fault : faults_) {
      if (fault.only_captured && !captured) continue;
      if (fault.rank == rank && fault.call == call) return &fault;
    }
    return nullptr;
  }
  ncclResult_t obey(const NcclFault& fault, std::unique_lock<std::mutex>& lock) {
    const NcclFault::Kind kind = fault.kind;
    if (kind == NcclFault::fails) return ncclInternalError;
    if (kind == NcclFault::endless) return ncclInProgress;
    ++hanging_;
    changed_.wait(lock, [this] { return released_; });
    --hanging_;
    return ncclSuccess;
  }
  static ncclResult_t state_of(const ncclComm& comm) {
    const World& world = *comm.world;
    if (!comm.is_up || world.joined < world.size) return ncclInProgress;
    if (comm.finalises && (comm.running > 0 || world.finalised < world.size)) return ncclInProgress;
    return ncclSuccess;
  }

  /// A group, on its stream's thread. `replayed`: of a graph, which may run it again and again.
  void run(ncclComm& comm, bool replayed, const std::vector<Operation>& operations) {
    std::unique_lock lock(mutex_);
    if (replayed) ++comm.running;
    World& world = *comm.world;
    const auto wait = [&](auto ready) {
      changed_.wait(lock, [&] { return comm.aborted || ready(); });
      return !comm.aborted;
    };
    std::deque<Message> sent;
    for (const Operation& operation : operations) {
      if (operation.kind != Operation::send) continue;
      sent.push_back({operation.in, operation.bytes});
      world.messages[{comm.rank, operation.peer}].push_back(&sent.back());
    }
    changed_.notify_all();
    for (const Operation& operation : operations) {
      if (operation.kind == Operation::receive) {
        auto& arriving = world.messages[{operation.peer, comm.rank}];
        if (!wait([&] { return !arriving.empty(); })) break;
        Message& message = *arriving.front();
        arriving.pop_front();
        if (message.bytes != operation.bytes) violate("a message of another length");
        std::memcpy(operation.out, message.data, std::min(message.bytes, operation.bytes));
        message.taken = true;
        changed_.notify_all();
      } else if (operation.kind >= Operation::all_reduce) {
        if (!meet(comm, comm.collectives++, operation, wait)) break;
      }
    }
    for (Message& message : sent) {
      if (wait([&] { return message.taken; })) continue;
      for (auto& [between, waiting] : world.messages) {
        waiting.erase(std::remove(waiting.begin(), waiting.end(), &message), waiting.end());
      }
    }
    --comm.running;
    changed_.notify_all();
  }

  /// False: broken off.
  template <class Wait>
  bool meet(ncclComm& comm, std::uint64_t number, const Operation& operation, Wait wait) {
    World& world = *comm.world;
    Collective& collective = world.collectives[number];
    const std::size_t count = operation.bytes / sizeof(float);
    const auto* const values = static_cast<const float*>(operation.in);
    collective.values[comm.rank].assign(values, values + count);
    changed_.notify_all();
    const auto all = [&] { return static_cast<int>(collective.values.size()) == world.size; };
    if (!wait(all)) return false;
    const bool root_only = operation.kind == Operation::reduce && comm.rank != operation.peer;
    auto* const result = static_cast<float*>(operation.out);
    for (std::size_t i = 0; i < count && !root_only; ++i) {
      if (operation.kind == Operation::broadcast) {
        result[i] = collective.values[operation.peer].at(i);
        continue;
      }
      float sum = 0;
      for (const auto& [rank, of_rank] : collective.values) sum += of_rank.at(i);
      result[i] = operation.op == ncclAvg ? sum / static_cast<float>(world.size) : sum;
    }
    if (++collective.left == world.size) world.collectives.erase(number);
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<ncclComm>> comms_;  // also those that have ended, until reset()
  std::map<std::string, std::shared_ptr<World>> worlds_;
  std::vector<NcclFault> faults_;
  std::map<int, std::vector<NcclCall>> calls_;  // by rank
  std::map<int, int> groups_;                   // by rank: ended
  std::set<void*> allocated_;
  std::string violation_;
  bool released_ = false;
  int hanging_ = 0;
};

}  // namespace ringlet::comm::stand_in
