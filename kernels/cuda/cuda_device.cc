#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "base/switches.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/graph_note.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/views.h"

namespace ringlet {

namespace {

void make_current(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }

cudaStream_t make_stream(int device) {
  make_current(device);
  cudaStream_t stream = nullptr;
  // Non-blocking: nothing here uses the default stream, and it may not order anything either.
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

/// Lets `device` read and write the memory of GPU `other`; false where that is not possible.
bool enable_peer_access(int device, int other) {
  int possible = 0;
  check_cuda(cudaDeviceCanAccessPeer(&possible, device, other), "cudaDeviceCanAccessPeer");
  if (possible == 0) return false;
  make_current(device);
  const cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {  // by another replica on this GPU
    cudaGetLastError();
    return true;
  }
  check_cuda(result, "cudaDeviceEnablePeerAccess");
  return true;
}

}  // namespace

CudaEvent::CudaEvent(int device) : device_(device) {
  make_current(device_);
  check_cuda(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "cudaEventCreate");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(handle_); }

void CudaEvent::synchronize() {
  const std::uint64_t record = launched.latest();
  if (record == 0) return;
  launched.wait_until(record);
  check_cuda(cudaEventSynchronize(handle_), "cudaEventSynchronize");
}

bool CudaEvent::reached() {
  const std::uint64_t record = launched.latest();
  if (!launched.is_reached(record)) return false;
  const cudaError_t answer = cudaEventQuery(handle_);
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError();  // or the next call that is checked would find it
    return false;
  }
  check_cuda(answer, "cudaEventQuery");
  return true;
}

CudaGraph::~CudaGraph() { cudaGraphExecDestroy(handle_); }

CudaStream::CudaStream(CudaDevice& device, const char* name, const DeviceOptions& options)
    : Stream(device, name),
      handle_(make_stream(device.id().index)),
      multiprocessors_(attribute(cudaDevAttrMultiProcessorCount, device.id().index)),
      early_launches_(!is_switched_off(kEarlyLaunches) &&
                      attribute(cudaDevAttrComputeCapabilityMajor, device.id().index) >= 9 &&
                      impl::kernel_code().awaits_inputs),
      tf32_(options.tf32),
      deterministic_(options.deterministic),
      autotune_(options.autotune),
      can_capture_(!is_switched_off(kCaptures)),
      can_branch_(!is_switched_off(kBranches)),
      fuses_(!is_switched_off(kFused)),
      sums_narrow_(!is_switched_off(kNarrowSums)) {}

CudaStream::~CudaStream() {
  cudaSetDevice(device().id().index);
  cudaStreamSynchronize(handle_);  // its work may use what goes now; an error was thrown before
  side_.reset();
  libraries_.reset();
  scratch_ = {};
  cudaStreamDestroy(handle_);
}

cudaStream_t CudaStream::handle() const {
  make_current(device().id().index);
  return aside_ ? side_->handle : handle_;
}

void* CudaStream::workspace(std::int64_t bytes) {
  make_room(scratch().workspaces, bytes);
  return scratch().workspaces.back().data();
}

unsigned* CudaStream::tickets(std::int64_t count) {
  make_tickets(scratch(), count * std::int64_t{sizeof(unsigned)});
  return static_cast<unsigned*>(scratch().tickets.back().data());
}

/// Whether that took a new buffer.
bool CudaStream::make_room(std::vector<Buffer>& buffers, std::int64_t bytes) {
  if (!buffers.empty() && bytes <= buffers.back().bytes()) return false;
  require(!aside_, "CudaStream::workspace",
          "a captured step must not ask for more than the eager one before it");
  buffers.emplace_back(device(), bytes);
  return true;
}

void CudaStream::make_tickets(Scratch& scratch, std::int64_t bytes) {
  constexpr std::int64_t kFewest = 4096;  // bytes: more channels than most models have
  if (!make_room(scratch.tickets, std::max(bytes, kFewest))) return;
  const Buffer& fresh = scratch.tickets.back();
  check_cuda(cudaMemsetAsync(fresh.data(), 0, static_cast<std::size_t>(fresh.bytes()), handle()),
             "cudaMemsetAsync");
}

CudaLibraries& CudaStream::libraries() {
  if (!libraries_) libraries_ = std::make_unique<CudaLibraries>(*this);
  return *libraries_;
}

void CudaStream::launch_record(CudaEvent& event, std::uint64_t record) {
  const struct Reaching {  // also after a failure: nobody may wait for ever
    RecordCount& launched;
    std::uint64_t record;
    ~Reaching() { launched.reach(record); }
  } reaching{event.launched, record};
  check_cuda(cudaEventRecord(event.handle(), handle()), "cudaEventRecord");
}

void CudaStream::launch_wait(const CudaEvent& event, std::uint64_t record) {
  if (record == 0) return;
  event.launched.wait_until(record);
  check_cuda(cudaStreamWaitEvent(handle(), event.handle(), 0), "cudaStreamWaitEvent");
}

void CudaStream::record(Event& event) {
  auto& cuda_event = static_cast<CudaEvent&>(event);
  launch_record(cuda_event, cuda_event.launched.next());
}

void CudaStream::wait(Event& event) {
  const auto& cuda_event = static_cast<CudaEvent&>(event);
  launch_wait(cuda_event, cuda_event.launched.latest());
}

void CudaStream::synchronize() {
  check_cuda(cudaStreamSynchronize(handle()), "cudaStreamSynchronize");
}

void CudaStream::begin_capture() {
  const auto bytes_of = [](const std::vector<Buffer>& buffers) {
    return buffers.empty() ? std::int64_t{1} : buffers.back().bytes();
  };
  if (!side_) side_ = std::make_unique<Side>(device().id().index);
  make_room(side_->scratch.workspaces, bytes_of(scratch_.workspaces));
  make_tickets(side_->scratch, bytes_of(scratch_.tickets));
  // Thread-local: other replicas' threads go on allocating and launching meanwhile.
  check_cuda(cudaStreamBeginCapture(handle(), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  captures_ = true;
}

std::unique_ptr<Graph> CudaStream::end_capture() {
  captures_ = branched_ = false;
  if (aside_) go_aside(false);
  cudaGraph_t captured = nullptr;
  check_cuda(cudaStreamEndCapture(handle(), &captured), "cudaStreamEndCapture");
  if (notes() != nullptr) notes()->push_back(describe(captured));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&executable, captured, 0);
  cudaGraphDestroy(captured);
  check_cuda(result, "cudaGraphInstantiate");
  return std::make_unique<CudaGraph>(executable);
}

CudaStream::Side::Side(int device) : handle(make_stream(device)), forks(device), joins(device) {}

CudaStream::Side::~Side() { cudaStreamDestroy(handle); }

/// cuDNN's handle knows the stream; all others are told at each launch.
void CudaStream::go_aside(bool aside) {
  aside_ = aside;
  if (libraries_) libraries_->follow_stream();
}

bool CudaStream::begin_branch() {
  if (!can_branch_ || !captures_ || aside_ || branched_) return false;
  record(side_->forks);
  go_aside(true);
  wait(side_->forks);
  branched_ = true;
  return true;
}

void CudaStream::end_branch() noexcept {
  try {
    record(side_->joins);
    go_aside(false);
  } catch (...) {  // the capture is broken: its end says so, and goes back
  }
}

void CudaStream::join_branch() {
  if (!branched_) return;
  wait(side_->joins);
  branched_ = false;
}

void CudaStream::launch(Graph& graph) {
  check_cuda(cudaGraphLaunch(static_cast<CudaGraph&>(graph).handle(), handle()), "cudaGraphLaunch");
}

CudaQueueStream::CudaQueueStream(CudaDevice& device, const char* name, const DeviceOptions& options)
    : CudaStream(device, name, options), queue_([&device] { make_current(device.id().index); }) {}

void CudaQueueStream::run(Task&& task) {
  if (queue_.is_running_here()) return task();
  queue_.run(task);
}

void CudaQueueStream::record(Event& event) {
  if (queue_.is_running_here()) return CudaStream::record(event);
  auto& cuda_event = static_cast<CudaEvent&>(event);
  queue_.run_always([this, &cuda_event, record = cuda_event.launched.next()] {
    launch_record(cuda_event, record);
  });
}

void CudaQueueStream::wait(Event& event) {
  if (queue_.is_running_here()) return CudaStream::wait(event);
  const auto& cuda_event = static_cast<CudaEvent&>(event);
  queue_.run_always([this, &cuda_event, record = cuda_event.launched.latest()] {
    launch_wait(cuda_event, record);
  });
}

void CudaQueueStream::synchronize() {
  try {
    queue_.synchronize();
  } catch (...) {
    cudaStreamSynchronize(handle());  // idle all the same: whoever waits may free memory next
    throw;
  }
  CudaStream::synchronize();
}

CudaDevice::CudaDevice(DeviceId id, const DeviceOptions& options)
    : Device(id),
      options_(options),
      scratch_limit_(cuda_scratch_limit(free_bytes(), options.deterministic)) {
  compute_ = std::make_unique<CudaStream>(*this, "compute", options);
  if (options.overlap) {
    communication_ = std::make_unique<CudaQueueStream>(*this, "communication", options);
  } else {
    communication_ = std::make_unique<CudaStream>(*this, "communication", options);
  }
}

CudaDevice::~CudaDevice() = default;

/// Peer access makes a context on the other GPU, which takes memory there. So it is enabled only
/// between GPUs that ask.
bool CudaDevice::reads_memory_of(DeviceId other) const {
  if (other == id()) return true;
  if (other.kind != DeviceKind::cuda) return false;
  const std::lock_guard lock(reach_mutex_);
  const auto known = reach_.find(other.index);
  if (known != reach_.end()) return known->second;
  return reach_[other.index] = enable_peer_access(id().index, other.index);
}

void* CudaDevice::do_allocate(std::int64_t bytes) {
  make_current(id().index);
  void* address = nullptr;
  const cudaError_t result =
      cudaMalloc(&address, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemoryError("device " + id().to_string() + " has no " + std::to_string(bytes >> 20) +
                           " MiB left; use a smaller batch or fewer replicas on it");
  }
  check_cuda(result, "cudaMalloc");
  return address;
}

Stream& CudaDevice::transfer() {
  if (!transfer_) transfer_ = std::make_unique<CudaStream>(*this, "transfer", options_);
  return *transfer_;
}

std::int64_t CudaDevice::free_bytes() const {
  make_current(id().index);
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

void* CudaDevice::allocate_host(std::int64_t bytes) {
  make_current(id().index);
  void* address = nullptr;
  // Portable: pinned for every GPU, since the data loader's batches may serve any.
  const cudaError_t result =
      cudaHostAlloc(&address, static_cast<std::size_t>(bytes), cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemoryError("the host has no " + std::to_string(bytes >> 20) +
                           " MiB left; use a smaller batch");
  }
  check_cuda(result, "cudaHostAlloc");
  return address;
}

void CudaDevice::deallocate_host(void* address) noexcept { cudaFreeHost(address); }

void CudaDevice::do_deallocate(void* address, std::int64_t) noexcept {
  cudaSetDevice(id().index);
  cudaFree(address);
}

}  // namespace ringlet
