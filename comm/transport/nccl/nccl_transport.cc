#include "comm/transport/nccl/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/collectives.h"
#include "comm/report/exchange_report.h"
#include "comm/transport/call_gate.h"
#include "comm/transport/nccl/nccl_communicator.h"
#include "comm/transport/nccl/nccl_library.h"
#include "kernels/cuda_devices.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

/// Rank 0's, on every rank.
ncclUniqueId share_unique_id(Transport& host) {
  ncclUniqueId id{};
  if (host.rank() == 0) {
    const ncclResult_t result = nccl().ncclGetUniqueId(&id);
    if (result != ncclSuccess) {
      throw CommError("ncclGetUniqueId failed on rank 0: " + explain(result, nullptr) +
                      "; NCCL_DEBUG=INFO in the environment makes NCCL say more");
    }
  }
  const auto device = open_device({}, {.threads = 1, .overlap = false});
  broadcast(host, device->communication(), 0, View(&id, {sizeof id}, DType::u8));
  return id;
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

class NcclTransport final : public Transport, public CollectiveEngine {
 public:
  NcclTransport(CallGate& gate, Transport& host, Stream& stream)
      : Transport(host.world()),
        host_(host),
        stream_(stream),
        handle_(cuda_stream_of(stream)),
        communicator_(gate, share_unique_id(host), introduce()),
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
  CollectiveEngine* engine() override { return this; }
  const char* engine_name() const override { return "nccl"; }

  void all_reduce(Stream& stream, View data, ReduceOp op) override;
  void reduce_and_broadcast(Stream& stream, View data, ReduceOp op) override;

 protected:
  void do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                   Combine combine) override;

 private:
  NcclRank introduce();
  void throw_if_aborted() const;
  template <class Calls>
  void enqueue(const char* what, Stream& stream, Calls calls);
  void watch() noexcept;
  void watch_stream();
  bool has_stalled();

  Transport& host_;
  Stream& stream_;
  cudaStream_t handle_;
  NcclCommunicator communicator_;
  std::atomic<std::int64_t> enqueued_{0};  // groups so far

  std::mutex mutex_;  // guards ending_
  std::condition_variable changed_;
  bool ending_ = false;
  // Of the watching thread alone:
  std::int64_t seen_ = 0;                      // of enqueued_
  Clock::time_point moved_at_ = Clock::now();  // stream last seen idle, or enqueued_ to grow
  std::thread watch_;                          // the last member: it uses the others
};

NcclRank NcclTransport::introduce() {
  set_timeout(host_.timeout_seconds());
  return {world(), stream_.device().id().to_string(), [this] { return timeout_seconds(); },
          [this] { throw_if_aborted(); }, [this](const std::string& why) { abort(why); }};
}

void NcclTransport::throw_if_aborted() const {
  if (const auto cause = root_cause()) throw_stopped(*cause, rank());
}

template <class Calls>
void NcclTransport::enqueue(const char* what, Stream& stream, Calls calls) {
  require(&stream == &stream_, what, "the transport was made for another stream");
  throw_if_aborted();
  cuda_stream_of(stream_);  // makes its GPU the calling thread's
  communicator_.enqueue(what, calls);
  enqueued_.fetch_add(1);
}

void NcclTransport::do_exchange(Stream& stream, int to, ConstView out, int from, View in,
                                Combine combine) {
  if (stream.in_order_with_host()) {
    host_.set_timeout(timeout_seconds());
    return forward_exchange(host_, stream, to, out, from, in, combine);
  }
  const bool sends = to != kNobody && out.bytes() > 0;
  const bool receives = from != kNobody && in.bytes() > 0;
  if (!sends && !receives) return;
  const bool reduces = receives && combine != Combine::copy;
  const View arriving = reduces ? View(stream.workspace(in.bytes()), in.shape(), in.dtype()) : in;
  enqueue("ncclSend and ncclRecv", stream, [&](ncclComm_t communicator) {
    ncclResult_t result = ncclSuccess;
    if (sends) {
      result = nccl().ncclSend(out.data(), static_cast<std::size_t>(out.bytes()), ncclUint8, to,
                               communicator, handle_);
    }
    if (receives && !NcclCommunicator::is_failure(result)) {
      result = nccl().ncclRecv(arriving.data(), static_cast<std::size_t>(in.bytes()), ncclUint8,
                               from, communicator, handle_);
    }
    return result;
  });
  if (reduces) reduce_into(stream, operation_of(combine), arriving, in);
}

void NcclTransport::all_reduce(Stream& stream, View data, ReduceOp op) {
  if (data.bytes() == 0) return;
  enqueue("ncclAllReduce", stream, [&](ncclComm_t communicator) {
    return nccl().ncclAllReduce(data.data(), data.data(), static_cast<std::size_t>(data.count()),
                                nccl_type(data.dtype()), nccl_op(op), communicator, handle_);
  });
}

void NcclTransport::reduce_and_broadcast(Stream& stream, View data, ReduceOp op) {
  if (data.bytes() == 0) return;
  const auto count = static_cast<std::size_t>(data.count());
  const ncclDataType_t type = nccl_type(data.dtype());
  enqueue("ncclReduce", stream, [&](ncclComm_t communicator) {
    return nccl().ncclReduce(data.data(), data.data(), count, type, nccl_op(op), 0, communicator,
                             handle_);
  });
  enqueue("ncclBroadcast", stream, [&](ncclComm_t communicator) {
    return nccl().ncclBroadcast(data.data(), data.data(), count, type, 0, communicator, handle_);
  });
}

/// Runs until the transport ends or the world is aborted.
void NcclTransport::watch() noexcept {
  try {
    watch_stream();
  } catch (const std::exception& error) {  // then nobody watches: the world cannot go on
    abort(error.what());
  }
}

void NcclTransport::watch_stream() {
  constexpr std::chrono::milliseconds kLook(5);
  cuda_stream_of(stream_);  // makes its GPU this thread's
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [this] { return ending_; })) {
    if (root_cause()) return communicator_.abort();
    if (const std::string error = communicator_.asynchronous_error(); !error.empty()) {
      abort(fmt::format("NCCL failed on rank {} ({}): {}", rank(),
                        stream_.device().id().to_string(), error));
    } else if (has_stalled()) {
      abort(explain_unfinished(*this));
    }
  }
}

/// Whether the stream has had work, and nothing has been added to it, for as long as the time-out
/// permits.
bool NcclTransport::has_stalled() {
  const Clock::time_point now = Clock::now();
  const std::int64_t enqueued = enqueued_.load();
  if (enqueued != seen_ || cudaStreamQuery(handle_) != cudaErrorNotReady) {
    seen_ = enqueued;
    moved_at_ = now;
    return false;
  }
  return std::chrono::duration<double>(now - moved_at_).count() > timeout_seconds();
}

class NcclProcess final : public NcclGroup {
 public:
  NcclProcess() { nccl(); }
  std::unique_ptr<Transport> join(Transport& host, Stream& stream) override {
    return std::make_unique<NcclTransport>(gate_, host, stream);
  }

 private:
  CallGate gate_;
};

}  // namespace

std::unique_ptr<NcclGroup> open_nccl() { return std::make_unique<NcclProcess>(); }

std::string nccl_version() {
  try {
    int version = 0;
    if (nccl().ncclGetVersion(&version) != ncclSuccess) return {};
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  } catch (const DeviceError&) {
    return {};
  }
}

}  // namespace ringlet::comm
