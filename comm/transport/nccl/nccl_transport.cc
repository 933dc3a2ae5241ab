#include "comm/transport/nccl/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/switches.h"
#include "comm/all_reduce/collectives.h"
#include "comm/report/exchange_report.h"
#include "comm/report/patience.h"
#include "comm/transport/call_gate.h"
#include "comm/transport/nccl/nccl_backend.h"
#include "comm/transport/nccl/nccl_communicator.h"
#include "kernels/capture.h"
#include "kernels/cuda_devices.h"
#include "kernels/memory.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kApart = 256;  // bytes between pieces of the workspace

/// Where a rank runs, as the others hear it.
struct RankGpu {
  char gpu[256] = {};    // GpuStreams::gpu_of(), cut
  char device[16] = {};  // "cuda:0"
};

void put(const std::string& text, std::span<char> field) {
  text.copy(field.data(), field.size() - 1);  // zeros follow
}

/// Throws CommError on every rank where two have one GPU: NCCL would say so in fewer words.
void require_a_gpu_each(Transport& host, Stream& in_place, const std::string& gpu,
                        const std::string& device) {
  RankGpu mine;
  put(gpu, mine.gpu);
  put(device, mine.device);
  std::vector<RankGpu> all(static_cast<std::size_t>(host.size()));
  const auto bytes_of = [](RankGpu* gpus, std::size_t count) {
    return View(gpus, {static_cast<std::int64_t>(count * sizeof(RankGpu))}, DType::u8);
  };
  all_gather(host, in_place, bytes_of(&mine, 1), bytes_of(all.data(), all.size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      if (std::string_view(all[rank].gpu) != all[other].gpu) continue;
      throw CommError(fmt::format(
          "ranks {} and {} ({} and {}) have one GPU, {}, and NCCL needs one for each; start fewer "
          "replicas, or let CUDA_VISIBLE_DEVICES show every process another one",
          host.in_world(static_cast<int>(other)), host.in_world(static_cast<int>(rank)),
          all[other].device, all[rank].device, all[rank].gpu));
    }
  }
}

/// Rank 0's, on every rank.
ncclUniqueId share_unique_id(const NcclFunctions& nccl, Transport& host, Stream& in_place) {
  ncclUniqueId id{};
  if (host.rank() == 0) {
    const ncclResult_t result = nccl.ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
      throw CommError("ncclGetUniqueId failed on rank 0: " + explain(nccl, result, nullptr) +
                      "; NCCL_DEBUG=INFO in the environment makes NCCL say more");
    }
  }
  broadcast(host, in_place, 0, View(&id, {sizeof id}, DType::u8));
  return id;
}

/// The first rank's that has one, on every rank; "" if none has.
std::string agree(Transport& host, const std::string& objection) {
  struct Text {
    char text[512] = {};
  };
  Text mine;
  put(objection, mine.text);
  std::vector<Text> all(static_cast<std::size_t>(host.size()));
  const auto in_place = open_device({}, {.threads = 1, .overlap = false});
  const auto bytes_of = [](Text* texts, std::size_t count) {
    return View(texts, {static_cast<std::int64_t>(count * sizeof(Text))}, DType::u8);
  };
  all_gather(host, in_place->communication(), bytes_of(&mine, 1), bytes_of(all.data(), all.size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string text = all[rank].text;
    if (!text.empty()) {
      return fmt::format("rank {}: {}", host.in_world(static_cast<int>(rank)), text);
    }
  }
  return {};
}

/// What the ranks tell each other over their host before NCCL is asked for anything.
ncclUniqueId meet(const NcclBackend& backend, Transport& host, Stream& stream) {
  const auto in_place = open_device({}, {.threads = 1, .overlap = false});
  const World& world = host.world();
  const std::string gpu = backend.streams.gpu_of(stream);
  require_a_gpu_each(host, in_place->communication(),
                     world.machines == 1 ? gpu : fmt::format("machine {}: {}", world.machine, gpu),
                     stream.device().id().to_string());
  return share_unique_id(backend.library, host, in_place->communication());
}

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::u8:
      break;
  }
  throw ContractError("NCCL is not asked to reduce bytes");
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::mean:
      return ncclAvg;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
  }
  throw ContractError("NCCL knows no such operation");
}

/// Memory that NCCL allocates and knows: it sends from there, and to there, without a copy of its
/// own. Where it gives none, the device's.
class NcclMemory final : public Allocator {
 public:
  NcclMemory(const NcclBackend& backend, NcclCommunicator& communicator, Stream& stream)
      : backend_(backend), communicator_(communicator), stream_(stream) {}

  void* allocate(std::int64_t bytes) override {
    backend_.streams.handle_of(stream_);  // makes its GPU the calling thread's
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    void* address = nullptr;
    if (backend_.library.ncclMemAlloc(&address, size) != ncclSuccess) {
      return stream_.device().allocate(bytes);  // says what is wrong, if it has none either
    }
    void* const handle = communicator_.add_memory(address, size);
    const std::lock_guard lock(mutex_);
    handles_.emplace(address, handle);
    return address;
  }

  void deallocate(void* address, std::int64_t bytes) noexcept override {
    std::unique_lock lock(mutex_);
    const auto found = handles_.find(address);
    if (found == handles_.end()) return stream_.device().deallocate(address, bytes);
    void* const handle = found->second;
    handles_.erase(found);
    lock.unlock();
    communicator_.remove_memory(handle);
    backend_.library.ncclMemFree(address);
  }

 private:
  const NcclBackend& backend_;
  NcclCommunicator& communicator_;
  Stream& stream_;
  std::mutex mutex_;
  std::map<void*, void*> handles_;  // what NCCL has allocated, and its registration or null
};

class NcclTransport final : public Transport, public CollectiveEngine, public Captures {
 public:
  NcclTransport(const NcclBackend& backend, CallGate& gate, Transport& host, Stream& stream,
                bool wants_captures)
      : Transport(host.world()),
        backend_(backend),
        host_(host),
        stream_(stream),
        handle_(backend.streams.handle_of(stream)),
        communicator_(connect(gate, wants_captures)),
        memory_(backend_, *communicator_, stream),
        watch_([this] { watch(); }) {}

  ~NcclTransport() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    watch_.join();
  }

  void abort(const std::string& reason) noexcept override { host_.abort(reason); }
  std::optional<RootCause> root_cause() const override { return host_.root_cause(); }
  FlightRecorder& recorder() override { return host_.recorder(); }
  std::optional<RankStatus> look_at(int other) const override { return host_.look_at(other); }
  const RankNames& names() const override { return host_.names(); }
  int machine_of(int of) const override { return host_.machine_of(of); }
  std::string hosts() const override { return host_.hosts(); }
  Transport& whole() override { return host_.whole(); }
  int in_world(int rank) const override { return host_.in_world(rank); }
  std::string path() const override {
    return world().machines == 1 ? "" : fmt::format("nccl between {} machines", world().machines);
  }
  CollectiveEngine* engine() override { return this; }
  const char* engine_name() const override { return "nccl"; }
  Allocator& allocator(Device& device) override {
    const bool knows = &device == &stream_.device() && backend_.library.have_memory() &&
                       !is_switched_off(kNcclMemory);
    return knows ? static_cast<Allocator&>(memory_) : device;
  }

  bool waits_in_kernels() const override { return !stream_.in_order_with_host(); }
  Captures* captures() override { return captures_ ? this : nullptr; }
  std::string why_no_captures() const override { return why_no_captures_; }
  void capture_begins() override { set_capturing(true); }
  void capture_ends() noexcept override { set_capturing(false); }
  void graph_launched() override { enqueued_.fetch_add(1); }

  void all_reduce(Stream& stream, View data, ReduceOp op) override;
  void reduce_and_broadcast(Stream& stream, View data, ReduceOp op) override;

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  std::unique_ptr<NcclCommunicator> connect(CallGate& gate, bool wants_captures);
  std::string try_capture(NcclCommunicator& communicator);
  std::string capture_sum(NcclCommunicator& communicator, void* number);
  void await_stream();
  NcclRank introduce();
  void throw_if_aborted() const;
  void set_capturing(bool capturing) noexcept;
  template <class Calls>
  void enqueue(const char* what, Stream& stream, Calls calls);
  void watch() noexcept;
  void watch_stream();
  bool has_stalled();

  NcclBackend backend_;
  Transport& host_;
  Stream& stream_;
  cudaStream_t handle_;
  CallGate own_gate_;  // of a communicator that no other thread of the process has a part in
  bool captures_ = false;
  std::string why_no_captures_;
  std::unique_ptr<NcclCommunicator> communicator_;
  NcclMemory memory_;
  std::atomic<std::int64_t> enqueued_{0};  // groups so far

  std::mutex mutex_;  // guards ending_ and capturing_
  std::condition_variable changed_;
  bool ending_ = false;
  bool capturing_ = false;
  // Of the watching thread alone:
  std::int64_t seen_ = 0;                      // of enqueued_
  Clock::time_point moved_at_ = Clock::now();  // stream last seen idle, or enqueued_ to grow
  std::thread watch_;                          // the last member: it uses the others
};

std::unique_ptr<NcclCommunicator> NcclTransport::connect(CallGate& gate, bool wants_captures) {
  const auto made = [this](CallGate& its_gate, bool blocking = false) {
    return std::make_unique<NcclCommunicator>(
        backend_.library, its_gate, meet(backend_, host_, stream_), introduce(), blocking);
  };
  if (!wants_captures || size() == 1) return made(gate);
  auto communicator = made(own_gate_, is_switched_off(kNcclThreads));
  why_no_captures_ = try_capture(*communicator);
  captures_ = why_no_captures_.empty();
  if (captures_) return communicator;
  communicator->abort();  // whatever state it was left in
  return made(gate);
}

/// Why a collective cannot be captured, or "". What has another cause, such as a rank that has
/// failed, is thrown.
std::string NcclTransport::try_capture(NcclCommunicator& communicator) {
  const Buffer number(stream_.device(), sizeof(float));
  try {
    return capture_sum(communicator, number.data());
  } catch (...) {
    communicator.abort();  // what is in flight may never end, and its memory could not go
    throw;
  }
}

/// Captures a sum of one number, and runs it twice.
std::string NcclTransport::capture_sum(NcclCommunicator& communicator, void* number) {
  const auto sum = [&] {
    communicator.enqueue("ncclAllReduce", [&](ncclComm_t handle) {
      return backend_.library.ncclAllReduce(number, number, 1, ncclFloat32, ncclSum, handle,
                                            handle_);
    });
  };
  sum();  // connects the ranks, which need not be possible in a capture
  await_stream();
  std::unique_ptr<Graph> graph;
  std::string objection;
  try {
    graph = capture(stream_, sum);
  } catch (const std::exception& error) {
    throw_if_aborted();
    objection = error.what();
  }
  std::string agreed = agree(host_, objection);
  for (int launch = 0; launch < 2 && agreed.empty(); ++launch) stream_.launch(*graph);
  await_stream();
  return agreed;
}

/// While nobody watches the stream yet.
void NcclTransport::await_stream() {
  const Clock::time_point begin = Clock::now();
  while (backend_.streams.is_busy(handle_)) {
    throw_if_aborted();
    if (std::chrono::duration<double>(Clock::now() - begin).count() > timeout_seconds()) {
      throw TimeoutError(explain_unfinished(host_));
    }
    std::this_thread::yield();
  }
}

void NcclTransport::set_capturing(bool capturing) noexcept {
  const std::lock_guard lock(mutex_);
  capturing_ = capturing;
}

NcclRank NcclTransport::introduce() {
  set_timeout(host_.timeout_seconds());
  return {world(),
          in_world(rank()),
          stream_.device().id().to_string(),
          [this] { return timeout_seconds(); },
          [this] { throw_if_aborted(); },
          [this](const std::string& why) { abort(why); }};
}

void NcclTransport::throw_if_aborted() const {
  if (const auto cause = root_cause()) throw_stopped(*cause, in_world(rank()));
}

template <class Calls>
void NcclTransport::enqueue(const char* what, Stream& stream, Calls calls) {
  require(&stream == &stream_, what, "the transport was made for another stream");
  throw_if_aborted();
  backend_.streams.handle_of(stream_);  // makes its GPU the calling thread's
  communicator_->enqueue(what, calls);
  enqueued_.fetch_add(1);
}

/// An empty message is a byte, from the begin of the workspace to kApart behind it: so it meets its
/// peer as any other does. What is to be added lies behind that.
void NcclTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                                Combine combine) {
  if (stream.in_order_with_host()) {
    host_.set_timeout(timeout_seconds());
    return forward_exchange(host_, stream, to, out, from, in, combine);
  }
  const bool sends = to != kNobody, receives = from != kNobody;
  if (!sends && !receives) return;
  const bool reduces = receives && in.bytes() > 0 && combine != Combine::copy;
  const bool has_empty = (sends && out.bytes() == 0) || (receives && in.bytes() == 0);
  std::byte* const scratch =
      reduces || has_empty
          ? static_cast<std::byte*>(stream.workspace(2 * kApart + (reduces ? in.bytes() : 0)))
          : nullptr;
  const View arriving = reduces ? View(scratch + 2 * kApart, in.shape(), in.dtype()) : in;
  enqueue("ncclSend and ncclRecv", stream, [&](ncclComm_t communicator) {
    ncclResult_t result = ncclSuccess;
    if (sends) {
      const bool empty = out.bytes() == 0;
      result = backend_.library.ncclSend(empty ? scratch : out.data(),
                                         static_cast<std::size_t>(empty ? 1 : out.bytes()),
                                         ncclUint8, to, communicator, handle_);
    }
    if (receives && !NcclCommunicator::is_failure(result)) {
      const bool empty = in.bytes() == 0;
      result = backend_.library.ncclRecv(empty ? scratch + kApart : arriving.data(),
                                         static_cast<std::size_t>(empty ? 1 : in.bytes()),
                                         ncclUint8, from, communicator, handle_);
    }
    return result;
  });
  if (reduces) backend_.operations.reduce_into(stream, operation_of(combine), arriving, in);
}

void NcclTransport::all_reduce(Stream& stream, View data, ReduceOp op) {
  if (data.bytes() == 0) return;
  enqueue("ncclAllReduce", stream, [&](ncclComm_t communicator) {
    return backend_.library.ncclAllReduce(
        data.data(), data.data(), static_cast<std::size_t>(data.count()), nccl_type(data.dtype()),
        nccl_op(op), communicator, handle_);
  });
}

void NcclTransport::reduce_and_broadcast(Stream& stream, View data, ReduceOp op) {
  if (data.bytes() == 0) return;
  const auto count = static_cast<std::size_t>(data.count());
  const ncclDataType_t type = nccl_type(data.dtype());
  enqueue("ncclReduce", stream, [&](ncclComm_t communicator) {
    return backend_.library.ncclReduce(data.data(), data.data(), count, type, nccl_op(op), 0,
                                       communicator, handle_);
  });
  enqueue("ncclBroadcast", stream, [&](ncclComm_t communicator) {
    return backend_.library.ncclBroadcast(data.data(), data.data(), count, type, 0, communicator,
                                          handle_);
  });
}

/// Runs until the transport ends or the world is aborted.
void NcclTransport::watch() noexcept {
  try {
    watch_stream();
  } catch (...) {  // then nobody watches: the world cannot go on, and what is in flight shall end
    abort(message_of_current_exception());
    communicator_->abort();
  }
}

void NcclTransport::watch_stream() {
  constexpr std::chrono::milliseconds kLook(5);
  backend_.streams.handle_of(stream_);  // makes its GPU this thread's
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [this] { return ending_; })) {
    if (root_cause()) {
      lock.unlock();  // NCCL waits for graphs, whose rank may wait in set_capturing()
      return communicator_->abort();
    }
    if (const std::string error = communicator_->asynchronous_error(); !error.empty()) {
      abort(fmt::format("NCCL failed on rank {} ({}): {}", in_world(rank()),
                        stream_.device().id().to_string(), error));
    } else if (has_stalled()) {
      abort(explain_unfinished(*this));
    }
  }
}

/// Whether the stream has had work, and nothing has been added to it, for as long as the time-out
/// permits, and no rank works.
bool NcclTransport::has_stalled() {
  const Clock::time_point now = Clock::now();
  const std::int64_t enqueued = enqueued_.load();
  if (capturing_ || enqueued != seen_ || !backend_.streams.is_busy(handle_)) {
    seen_ = enqueued;
    moved_at_ = now;
    return false;
  }
  const Clock::duration timeout = timeout_of(*this);
  if (now - moved_at_ <= timeout) return false;
  const Clock::duration more = patience_of(*this);
  moved_at_ = now - timeout + more;
  return more.count() == 0;
}

class NcclProcess final : public NcclGroup {
 public:
  explicit NcclProcess(const NcclBackend& backend) : backend_(backend) {}
  std::unique_ptr<Transport> join(Transport& host, Stream& stream, bool wants_captures) override {
    return std::make_unique<NcclTransport>(backend_, gate_, host, stream, wants_captures);
  }

 private:
  NcclBackend backend_;
  CallGate gate_;
};

}  // namespace

cudaStream_t GpuStreams::handle_of(Stream& stream) const { return cuda_stream_of(stream); }

bool GpuStreams::is_busy(cudaStream_t handle) const {
  return cudaStreamQuery(handle) == cudaErrorNotReady;
}

std::string GpuStreams::gpu_of(Stream& stream) const {
  const std::string gpu = cuda_uuid(stream.device().id().index);
  const char* host = std::getenv("NCCL_HOSTID");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return host == nullptr ? gpu : std::string(host) + "/" + gpu;
}

std::unique_ptr<NcclGroup> open_nccl(const NcclBackend& backend) {
  return std::make_unique<NcclProcess>(backend);
}

std::unique_ptr<NcclGroup> open_nccl() {
  static const GpuStreams streams;
  static const MemoryOperations operations;
  return open_nccl({nccl_library(), streams, operations});
}

std::string nccl_version() {
  try {
    int version = 0;
    if (nccl_library().ncclGetVersion(&version) != ncclSuccess) return {};
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  } catch (const DeviceError&) {
    return {};
  }
}

}  // namespace ringlet::comm
