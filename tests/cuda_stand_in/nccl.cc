// NCCL, between threads and between processes of one machine. What ranks send lies in files of a
// folder that the unique id names, so that both are one thing. As with NCCL, a group is work of a
// stream that waits there until its peers have come, a communicator's groups run in the order of
// their calls on every rank, and what is captured runs whenever its graph does.
//
// A communicator that is not blocking puts a group on its stream from a thread of its own, up to
// 5 ms after ncclGroupEnd(), and is in progress until then. Ranks that call different things, and
// memory that is not the GPU's, make it fail: NCCL would hang, or write where it should not. So
// does memory that a rank asks for while another rank of its process waits for its next group,
// unless RINGLET_STAND_IN_RANKS is "processes": then threads play them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/reduction.h"
#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/gpu_memory.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<char>;

/// What a rank sends, and what it says of it, in one line.
struct Part {
  std::string text;
  Bytes data;
};

/// Appears as a whole, or not at all.
void write_file(const fs::path& path, const std::string& text, const void* data,
                std::size_t bytes) {
  fs::path unfinished = path;
  unfinished += ".new";
  (std::ofstream(unfinished, std::ios::binary) << text << '\n')
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  std::error_code gone;  // the folder, with a rank that has ended
  fs::rename(unfinished, path, gone);
}

Part read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  Part part;
  std::getline(in, part.text);
  part.data.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return part;
}

/// The folders that this process has made. They go with it.
struct Folders {
  std::vector<fs::path> made;
  Folders() = default;
  ~Folders() {
    for (const fs::path& folder : made) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;
};

/// How many operations outside of graphs a communicator was called for, by their kind.
struct Called {
  std::map<int, std::uint64_t> sends, receives;  // by peer
  std::uint64_t collectives = 0;
};

/// What a kernel waits for: the call by which `peer` takes or brings a message, or, without a peer,
/// the others' of a collective.
struct Awaited {
  enum What : std::uint8_t { send, receive, collective } what;
  int peer;
  std::uint64_t number;
};

std::mutex progress_mutex;  // of all communicators; whoever holds it calls nothing

}  // namespace

struct ncclComm {
  fs::path folder;
  int size = 0, rank = 0, gpu = 0;
  bool blocks = true;
  std::atomic<bool> finalises = false, aborted = false, failed = false;
  std::atomic<int> in_flight = 0;  // groups on the stream, outside of graphs
  std::thread starter;             // puts the latest group on its stream
  std::atomic<bool> starts = false;
  int groups = 0;
  std::mutex why_mutex;
  std::string why;  // it failed
  std::atomic<cudaStream_t> stream = nullptr;
  // Under progress_mutex:
  Called called;
  std::vector<Awaited> awaited;  // by the group that waits now
  // Of the groups that have begun, which one thread at a time runs:
  std::map<int, std::uint64_t> sent, received;  // by peer
  std::uint64_t collectives = 0;

  fs::path file(const char* kind, int of_rank) const {
    return folder / (kind + std::to_string(of_rank));
  }
  fs::path message(int from, int to, std::uint64_t number) const {
    return folder / ("from" + std::to_string(from) + "to" + std::to_string(to) + "number" +
                     std::to_string(number));
  }
  fs::path part(std::uint64_t collective, int of_rank) const {
    return file(("collective" + std::to_string(collective) + "rank").c_str(), of_rank);
  }
  /// Whether all ranks have left a file of that kind. Where the folder has gone, all have ended.
  bool all_have(const char* kind) const {
    for (int other = 0; other < size; ++other) {
      if (!fs::exists(file(kind, other))) return !fs::exists(folder);
    }
    return true;
  }
  ncclResult_t fail(const std::string& reason) {
    const std::lock_guard lock(why_mutex);
    if (!failed.exchange(true)) why = "rank " + std::to_string(rank) + ": " + reason;
    return ncclInvalidUsage;
  }
  ncclComm() = default;
  ~ncclComm() { settle(); }
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  /// The latest group is on its stream then.
  void settle() {
    if (starter.joinable()) starter.join();
  }
  ncclResult_t state() const {
    if (starts) return ncclInProgress;
    if (failed) return ncclInvalidUsage;
    if (!all_have("rank")) return ncclInProgress;
    if (!finalises) return ncclSuccess;
    if (in_flight > 0) cudaStreamQuery(stream);  // the stand-in's streams run where somebody asks
    return in_flight > 0 || !all_have("end") ? ncclInProgress : ncclSuccess;
  }
};

namespace {

using ringlet::BFloat16;
using ringlet::Half;
namespace reduction = ringlet::reduction;

/// result = the parts reduced in the order of the ranks.
template <class T, class Op>
void reduce(const std::vector<Bytes>& parts, ncclRedOp_t op, void* result, Op combine) {
  const std::size_t count = parts[0].size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = [i](const Bytes& part) {
      T value;
      std::memcpy(&value, part.data() + i * sizeof(T), sizeof(T));
      return reduction::load(value);
    };
    auto sum = element(parts[0]);
    for (std::size_t rank = 1; rank < parts.size(); ++rank)
      sum = combine(sum, element(parts[rank]));
    if (op == ncclAvg) sum /= static_cast<decltype(sum)>(parts.size());
    static_cast<T*>(result)[i] = reduction::round_to<T>(sum);
  }
}

template <class T>
void reduce(const std::vector<Bytes>& parts, ncclRedOp_t op, void* result) {
  if (op == ncclMin) return reduce<T>(parts, op, result, reduction::Min());
  if (op == ncclMax) return reduce<T>(parts, op, result, reduction::Max());
  reduce<T>(parts, op, result, reduction::Sum());
}

void reduce(ncclDataType_t type, const std::vector<Bytes>& parts, ncclRedOp_t op, void* result) {
  switch (type) {
    case ncclFloat16:
      return reduce<Half>(parts, op, result);
    case ncclBfloat16:
      return reduce<BFloat16>(parts, op, result);
    case ncclInt32:
      return reduce<std::int32_t>(parts, op, result);
    default:
      return reduce<float>(parts, op, result);
  }
}

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclUint8) return 1;
  return type == ncclFloat16 || type == ncclBfloat16 ? 2 : 4;
}

/// Memory that ncclMemAlloc() gave.
std::set<std::uintptr_t>& memory_of_nccl() {
  static std::set<std::uintptr_t> begins;
  return begins;
}
std::mutex memory_mutex;

bool is_of_nccl(const void* address) {
  const auto begin = ringlet::stand_in::memory_at(reinterpret_cast<std::uintptr_t>(address)).first;
  const std::lock_guard lock(memory_mutex);
  return memory_of_nccl().contains(begin);
}

/// One operation of a group.
struct Operation {
  enum Kind { send, receive, all_reduce, reduce, broadcast } kind;
  const void* in;
  void* out;
  std::size_t count;
  ncclDataType_t type;
  int peer;  // or the root
  ncclRedOp_t op = ncclSum;
  bool is_done = false;
  std::uint64_t number = 0;   // of its message or collective
  std::uint64_t call = 0;     // of those outside of graphs
  bool loses_a_rank = false;  // by a fault (faults.h)

  std::size_t bytes() const { return count * size_of(type); }
  bool brings_data(int rank) const { return kind != broadcast || rank == peer; }
  /// "allreduce of 10 numbers (type 7, op 0, root -1)": alike on all ranks that meet in it.
  std::string text() const {
    constexpr const char* kNames[] = {"message", "message", "allreduce", "reduce", "broadcast"};
    const bool is_message = kind == send || kind == receive;
    return fmt::format("{} of {} numbers (type {}, op {}, root {})", kNames[kind], count,
                       static_cast<int>(type), static_cast<int>(op), is_message ? -1 : peer);
  }
  /// Whether this rank reads and writes memory of its GPU.
  bool is_on(const ncclComm& comm) const {
    using ringlet::stand_in::gpu_of;
    const bool reads = in != nullptr && brings_data(comm.rank);
    const bool writes = out != nullptr && (kind != reduce || comm.rank == peer);
    return (!reads || gpu_of(in, bytes()) == comm.gpu) &&
           (!writes || gpu_of(out, bytes()) == comm.gpu);
  }

  void begin(ncclComm& comm) {
    is_done = false;
    if (kind == send) {
      number = comm.sent[peer]++;
      write_file(comm.message(comm.rank, peer, number), text(), in, bytes());
    } else if (kind == receive) {
      number = comm.received[peer]++;
    } else {
      number = comm.collectives++;
      write_file(comm.part(number, comm.rank), text(), in, brings_data(comm.rank) ? bytes() : 0);
    }
  }
  /// A message that was sent waits for its receiver.
  bool go_on(ncclComm& comm) {
    if (is_done) return true;
    if (kind == send) return is_done = !fs::exists(comm.message(comm.rank, peer, number));
    if (kind == receive) return is_done = take_message(comm);
    return is_done = meet(comm);
  }

 private:
  bool take_message(ncclComm& comm) {
    const fs::path message = comm.message(peer, comm.rank, number);
    if (!fs::exists(message)) return false;
    const Part part = read_file(message);
    if (agrees(part, peer, comm)) std::memcpy(out, part.data.data(), bytes());
    fs::remove(message);
    return true;
  }
  bool agrees(const Part& part, int other, ncclComm& comm) const {
    if (part.text == text()) return true;
    comm.fail(fmt::format("{}, but rank {} has {}", text(), other, part.text));
    return false;
  }
  bool meet(ncclComm& comm) {
    std::vector<Bytes> parts;
    for (int other = 0; other < comm.size; ++other) {
      if (!fs::exists(comm.part(number, other))) return false;
    }
    for (int other = 0; other < comm.size; ++other) {
      Part part = read_file(comm.part(number, other));
      if (!agrees(part, other, comm)) return true;
      parts.push_back(std::move(part.data));
    }
    // Who has come here has read the parts of the collective before.
    if (number > 0) fs::remove(comm.part(number - 1, comm.rank));
    if (loses_a_rank && parts.size() > 1) parts.pop_back();
    if (kind == broadcast) {
      std::memcpy(out, parts[static_cast<std::size_t>(peer)].data(), bytes());
    } else if (kind == all_reduce || comm.rank == peer) {
      ::reduce(type, parts, op, out);
    }
    return true;
  }
};

/// The calls between ncclGroupStart() and ncclGroupEnd(), as work of their stream.
struct Group {
  int depth = 0;
  std::shared_ptr<ncclComm> comm{};
  cudaStream_t stream = nullptr;
  bool is_captured = false;
  std::set<int> gpus{};  // that NCCL's kernels reach
  std::vector<Operation> operations{};
  bool has_begun = false;

  /// Notes what has been called for on this communicator.
  void note_calls() {
    const std::lock_guard lock(progress_mutex);
    for (Operation& operation : operations) {
      Called& called = comm->called;
      std::uint64_t& count = operation.kind == Operation::send ? called.sends[operation.peer]
                             : operation.kind == Operation::receive
                                 ? called.receives[operation.peer]
                                 : called.collectives;
      operation.call = count++;
    }
  }

  bool go_on() {
    const ringlet::stand_in::OpenMemory open(gpus);
    if (!has_begun && !comm->aborted) {
      for (Operation& operation : operations) {
        if (!operation.is_on(*comm)) comm->fail(operation.text() + " in memory that was freed");
        operation.loses_a_rank = operation.kind != Operation::broadcast && loses_ranks(operation);
        if (!comm->failed) operation.begin(*comm);
      }
    }
    has_begun = true;
    bool is_done = true;
    for (Operation& operation : operations) {
      is_done = (comm->aborted || comm->failed || operation.go_on(*comm)) && is_done;
    }
    if (!is_captured) note_awaited();
    if (!is_done) return false;
    has_begun = false;
    if (!is_captured) --comm->in_flight;
    return true;
  }

 private:
  void note_awaited() const {
    std::vector<Awaited> awaited;
    for (const Operation& operation : operations) {
      if (comm->aborted || comm->failed || operation.is_done) continue;
      const auto what = operation.kind == Operation::send      ? Awaited::receive
                        : operation.kind == Operation::receive ? Awaited::send
                                                               : Awaited::collective;
      awaited.push_back({what, operation.peer, operation.call});
    }
    const std::lock_guard lock(progress_mutex);
    comm->awaited = std::move(awaited);
  }
  bool loses_ranks(const Operation& operation) const {
    using ringlet::stand_in::has_fault;
    return (has_fault("nccl-memory") && is_of_nccl(operation.in)) ||
           (has_fault("nccl-threads") && is_captured && !comm->blocks);
  }
};
thread_local Group group;

std::map<ncclComm_t, std::shared_ptr<ncclComm>>& communicators() {
  static std::map<ncclComm_t, std::shared_ptr<ncclComm>> made;
  return made;
}
std::mutex communicators_mutex;

/// Whether `waiting`'s kernel waits for a call that `late` has not made.
bool waits_for(const ncclComm& waiting, const ncclComm& late) {
  const auto count_of = [](const std::map<int, std::uint64_t>& counts, int peer) {
    const auto found = counts.find(peer);
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [what, peer, number] : waiting.awaited) {
    if (what == Awaited::collective && late.called.collectives <= number) return true;
    if (peer != late.rank) continue;
    if (what == Awaited::send && count_of(late.called.sends, waiting.rank) <= number) return true;
    if (what == Awaited::receive && count_of(late.called.receives, waiting.rank) <= number) {
      return true;
    }
  }
  return false;
}

bool is_awaited(int gpu) {
  const char* played = std::getenv("RINGLET_STAND_IN_RANKS");
  if (played != nullptr && std::strcmp(played, "processes") == 0) return false;
  const std::scoped_lock lock(communicators_mutex, progress_mutex);
  for (const auto& [key, late] : communicators()) {
    if (late->gpu != gpu || late->aborted || late->failed) continue;
    for (const auto& [other_key, waiting] : communicators()) {
      const bool meets = other_key != key && waiting->folder == late->folder;
      if (meets && !waiting->aborted && waits_for(*waiting, *late)) return true;
    }
  }
  return false;
}

std::shared_ptr<ncclComm> find(ncclComm_t comm) {
  const std::lock_guard lock(communicators_mutex);
  const auto found = communicators().find(comm);
  return found == communicators().end() ? nullptr : found->second;
}

void forget(ncclComm_t comm) {
  comm->settle();
  const std::lock_guard lock(communicators_mutex);
  communicators().erase(comm);
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const Operation& operation) {
  const bool fits = group.comm == nullptr || (group.comm.get() == comm && group.stream == stream);
  if (group.depth == 0 || !fits) return ncclInvalidUsage;  // Ringlet calls nothing else
  group.comm = find(comm);
  group.stream = stream;
  if (group.comm == nullptr || operation.peer >= group.comm->size) return ncclInvalidArgument;
  if (group.comm->starts) return group.comm->fail("a call while the one before is in progress");
  if (!operation.is_on(*group.comm)) {
    group.comm->fail(fmt::format("{} in no memory of GPU {}", operation.text(), group.comm->gpu));
    return ncclInvalidArgument;
  }
  group.operations.push_back(operation);
  return ncclSuccess;
}

ncclResult_t enqueue(Group& made) {
  cudaStreamCaptureStatus status{};
  if (cudaStreamIsCapturing(made.stream, &status) != cudaSuccess) return ncclUnhandledCudaError;
  made.is_captured = status != cudaStreamCaptureStatusNone;
  if (made.is_captured && std::getenv("RINGLET_STAND_IN_NCCL") != nullptr) {
    return made.comm->fail("no captures, as RINGLET_STAND_IN_NCCL says");  // for good
  }
  if (made.comm->aborted || made.comm->finalises) return ncclInvalidUsage;
  if (!made.is_captured) {
    made.comm->stream = made.stream;
    ++made.comm->in_flight;
  }
  made.gpus = ringlet::stand_in::reach_of(made.comm->gpu);
  const auto kept = std::make_shared<Group>(std::move(made));
  const cudaError_t result =
      ringlet::stand_in::enqueue_waiting(kept->stream, "nccl", [kept] { return kept->go_on(); });
  return result == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/// As a communicator that is not blocking: a thread puts the group on its stream, now or later.
ncclResult_t start(const std::shared_ptr<Group>& made) {
  const std::shared_ptr<ncclComm> comm = made->comm;  // which forget() keeps until that has ended
  comm->settle();
  const int number = comm->groups++ + comm->rank;
  const std::chrono::milliseconds late(number % 16 == 0 ? 5 : number % 4 == 0 ? 1 : 0);
  comm->starts = true;
  comm->starter = std::thread([kept = made, late, &comm = *comm]() mutable {
    std::this_thread::sleep_for(late);
    const ncclResult_t result = enqueue(*kept);
    kept.reset();
    if (result != ncclSuccess) {
      comm.fail(std::string("a group on its stream: ") + cudaGetErrorString(cudaGetLastError()));
    }
    comm.starts = false;
  });
  return ncclInProgress;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static Folders folders;
  std::string folder = (fs::temp_directory_path() / "ringlet-nccl-XXXXXX").string();
  if (folder.size() >= sizeof id->internal || mkdtemp(folder.data()) == nullptr) {
    return ncclSystemError;
  }
  const std::lock_guard lock(communicators_mutex);
  folders.made.emplace_back(folder);
  std::memset(id, 0, sizeof *id);
  folder.copy(id->internal, folder.size());
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "an error of the stand-in";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  if (comm == nullptr) return "";
  const std::lock_guard lock(comm->why_mutex);
  return comm->why.c_str();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  ringlet::stand_in::tell_of_waiting(is_awaited);
  const auto comm = std::make_shared<ncclComm>();
  comm->folder = id.internal;
  comm->size = size;
  comm->rank = rank;
  comm->blocks = config->blocking != 0;
  if (cudaGetDevice(&comm->gpu) != cudaSuccess) return ncclUnhandledCudaError;
  {
    const std::lock_guard lock(communicators_mutex);
    communicators()[comm.get()] = comm;
  }
  *made = comm.get();
  write_file(comm->file("rank", rank), {}, nullptr, 0);
  while (comm->blocks && comm->state() == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return comm->state();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->settle();
  comm->finalises = true;
  write_file(comm->file("end", comm->rank), {}, nullptr, 0);
  return comm->state();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->finalises) return ncclInvalidUsage;
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0 || group.comm == nullptr) return ncclSuccess;
  Group made = std::exchange(group, {});
  if (made.comm->failed) return ncclInvalidUsage;
  cudaStreamCaptureStatus status{};
  const bool asks = cudaStreamIsCapturing(made.stream, &status) == cudaSuccess;
  if (asks && status == cudaStreamCaptureStatusNone) made.note_calls();
  if (made.comm->blocks) return enqueue(made);
  return start(std::make_shared<Group>(std::move(made)));
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Operation::send, data, nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {Operation::receive, nullptr, data, count, type, peer});
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Operation::all_reduce, in, out, count, type, -1, op});
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Operation::reduce, in, out, count, type, root, op});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Operation::broadcast, in, out, count, type, root});
}

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  if (cudaMalloc(address, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  const std::lock_guard lock(memory_mutex);
  memory_of_nccl().insert(reinterpret_cast<std::uintptr_t>(*address));
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* address) {
  {
    const std::lock_guard lock(memory_mutex);
    memory_of_nccl().erase(reinterpret_cast<std::uintptr_t>(address));
  }
  return ringlet::stand_in::free_at_once(address) == cudaSuccess ? ncclSuccess
                                                                 : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t, void* address, std::size_t, void** handle) {
  *handle = address;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) { return ncclSuccess; }

}  // extern "C"
