#include "comm/transport/mpi/mpi_transport.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "comm/all_reduce/collectives.h"
#include "comm/processes/joined_group.h"
#include "comm/transport/between/between_transport.h"
#include "comm/transport/mpi/mpi_module.h"
#include "comm/transport/rank_wait.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kFile = "libringlet_mpi.so";

/// Beside the program, as built; in ../lib, as installed; or where the system looks.
std::vector<std::string> paths_of_module() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {kFile};
  return {folder / kFile, folder / "../lib" / kFile, kFile};
}

/// Opened once, and kept: MPI has threads and exit handlers. It looks for parts of itself among the
/// symbols of the whole program. Null where there is none; `why` then says what was wrong with the
/// first path that has one.
const MpiModule* open_module(std::string& why) {
  for (const std::string& path : paths_of_module()) {
    std::error_code error;
    if (path.front() == '/' && !std::filesystem::exists(path, error)) continue;
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) {
      const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own
      if (why.empty()) why = text == nullptr ? path : text;
      continue;
    }
    auto* const get = reinterpret_cast<GetMpiModule*>(::dlsym(module, kMpiModuleSymbol));
    const MpiModule* const found = get == nullptr ? nullptr : get();
    if (found != nullptr && found->version == MpiModule::kVersion) return found;
    if (why.empty()) why = path + " is of another version of Ringlet";
  }
  return nullptr;
}

const MpiModule& module() {
  static std::string why;
  static const MpiModule* const opened = open_module(why);
  if (opened != nullptr) return *opened;
  throw CommError(
      fmt::format("--transport mpi cannot open MPI: {}; install libopenmpi-dev and build anew, or "
                  "use --transport gloo",
                  why));
}

void require_none(const char* error) {
  if (error != nullptr) throw std::runtime_error(error);
}

/// While it lives, the thread's sleeps end when they shall. Otherwise the kernel takes 50 us more.
class PunctualSleeps {
 public:
  PunctualSleeps() : usual_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1); }
  ~PunctualSleeps() {
    if (usual_ > 0) ::prctl(PR_SET_TIMERSLACK, usual_);
  }
  PunctualSleeps(const PunctualSleeps&) = delete;
  PunctualSleeps& operator=(const PunctualSleeps&) = delete;

 private:
  int usual_;  // ns
};

/// Calls is_done() until it holds: first without a pause, for `awake`, then with sleeps in between.
/// They last a share of the wait so far, so that none becomes much longer by them, and leave the
/// processor to the rank's computation, or to the rank that is waited for. It never
/// yields instead: where somebody else wants the processor, that gives it away for the rest of a
/// tick, in which half a MiB could have come.
template <class IsDone>
void poll(std::chrono::milliseconds timeout, std::chrono::nanoseconds awake, IsDone is_done) {
  using std::chrono::microseconds;
  constexpr microseconds kShortest(10), kLongest(100);
  constexpr int kShare = 16;
  const Clock::time_point begin = Clock::now();
  std::optional<PunctualSleeps> sleeps;
  while (!is_done()) {
    const auto waited = Clock::now() - begin;
    if (waited > timeout) throw std::runtime_error("Timed out");
    if (waited < awake) continue;
    if (!sleeps) sleeps.emplace();
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / kShare, kShortest, kLongest));
  }
}

/// MPI, as the threads of this process call it. All calls return at once, until a process dies:
/// then some never do.
class Mpi {
 public:
  Mpi(const MpiModule& module, std::chrono::nanoseconds awake) : module_(module), awake_(awake) {}
  const MpiModule* operator->() const { return &module_; }
  /// How long a thread asks again and again before it sleeps.
  std::chrono::nanoseconds awake() const { return awake_; }

  /// Calls function(arguments...), one of the module's. What is wrong, or null.
  template <class... Arguments>
  const char* call(const char* (*function)(Arguments...),
                   std::type_identity_t<Arguments>... arguments) {
    inside_.fetch_add(1);
    const char* const error = function(arguments...);
    inside_.fetch_sub(1);
    return error;
  }
  bool is_inside() const { return inside_.load() > 0; }

 private:
  const MpiModule& module_;
  std::chrono::nanoseconds awake_;
  std::atomic<int> inside_{0};  // threads
};

/// A message up to kLongestCut goes in pieces of kPiece. Open MPI sends what is longer than 64 KiB
/// over TCP only after a word of the receiver. Where both sides send, that word of the one who came
/// later waits in the socket behind its own data, and the two messages go one after the other. A
/// piece needs no such word, but is copied; and of a longer message more is on its way than a
/// socket takes, so that the word gets through.
constexpr std::size_t kPiece = 60 << 10, kLongestCut = 4 << 20;

class MpiBuffer final : public MessageBuffer {
 public:
  explicit MpiBuffer(Mpi& mpi) : mpi_(mpi), memory_(std::make_unique<Memory>()) {}
  ~MpiBuffer() override {
    if (pieces_.empty()) return;
    for (const Piece& piece : pieces_) mpi_->abandon(piece.request);
    static_cast<void>(memory_.release());  // MPI may still write there
  }
  MpiBuffer(const MpiBuffer&) = delete;
  MpiBuffer& operator=(const MpiBuffer&) = delete;

  std::byte* data() override { return memory_->data(); }
  void reserve(std::size_t bytes) override {
    if (memory_->size() < bytes) memory_->resize(bytes);
  }
  void send(int process, const MessageSlot& slot, std::size_t begin, std::size_t bytes) override {
    begin_message(mpi_->send, process, slot, begin, bytes);
  }
  void receive(int process, const MessageSlot& slot, std::size_t begin,
               std::size_t bytes) override {
    begin_message(mpi_->receive, process, slot, begin, bytes);
  }
  void wait_sent(std::chrono::milliseconds timeout) override { wait(timeout); }
  void wait_received(std::chrono::milliseconds timeout) override { wait(timeout); }
  void wake() override { woken_.store(true); }

 private:
  using Memory = std::vector<std::byte>;
  struct Piece {
    MpiRequest* request;
    bool is_last;  // of its message
  };

  static int tag_of(const MessageSlot& slot) {
    const std::uint64_t pair = slot.channel * slot.pairs + slot.pair;
    return static_cast<int>(2 * pair + (slot.bytes == 0 ? 0 : 1));
  }
  template <class Function>
  void begin_message(Function* function, int process, const MessageSlot& slot, std::size_t begin,
                     std::size_t bytes) {
    const std::size_t piece = bytes <= kLongestCut ? kPiece : bytes;
    const std::size_t end = begin + bytes;
    do {
      const std::size_t size = std::min(piece, end - begin);
      MpiRequest* request = nullptr;
      require_none(mpi_.call(function, data() + begin, static_cast<std::int64_t>(size), process,
                             tag_of(slot), &request));
      begin += size;
      pieces_.push_back({.request = request, .is_last = begin == end});
    } while (begin < end);
  }
  /// Until the oldest message is done.
  void wait(std::chrono::milliseconds timeout) {
    poll(timeout, mpi_.awake(), [this] {
      while (!woken_.load()) {
        const Piece piece = pieces_.front();
        int done = 0;
        const char* const error = mpi_.call(mpi_->test, piece.request, &done);
        if (error != nullptr || done != 0) pieces_.pop_front();
        require_none(error);
        if (done == 0) return false;
        if (piece.is_last) return true;
      }
      return true;
    });
  }

  Mpi& mpi_;
  std::unique_ptr<Memory> memory_;
  std::deque<Piece> pieces_;  // the oldest first
  std::atomic<bool> woken_{false};
};

/// What MPI lacks, by the kernels. Any thread.
void reduce_elements(int dtype, int op, const void* theirs, void* data, std::int64_t count) {
  thread_local const auto device = open_device({}, {.threads = 1, .overlap = false});
  reduce_into(device->communication(), static_cast<ReduceOp>(op),
              ConstView(theirs, {count}, static_cast<DType>(dtype)),
              View(data, {count}, static_cast<DType>(dtype)));
}

class MpiEngine final : public MessageEngine {
 public:
  MpiEngine(const MpiModule& mpi, int processes, std::chrono::nanoseconds awake)
      : mpi_(mpi, awake), processes_(processes) {}
  ~MpiEngine() override {
    if (!broken_off_.load()) mpi_->close();
  }
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;

  const char* name() const override { return "mpi"; }
  const char* title() const override { return "MPI"; }
  std::unique_ptr<MessageBuffer> make_buffer() override {
    return std::make_unique<MpiBuffer>(mpi_);
  }
  void all_reduce(const EngineCall& call) override {
    reduce_by(mpi_->all_reduce, call);
    finish_reduction(call.stream, call.data, call.op, processes_);
  }
  void reduce_and_broadcast(const EngineCall& call) override {
    reduce_by(mpi_->reduce, call);
    MpiRequest* request = nullptr;
    require_none(mpi_.call(mpi_->broadcast, call.data.data(), call.data.bytes(), &request));
    wait(request, call.timeout);
    finish_reduction(call.stream, call.data, call.op, processes_);
  }
  void break_off() override { broken_off_.store(true); }
  bool is_inside() const override { return mpi_.is_inside(); }

 private:
  using Reduce = decltype(MpiModule::all_reduce);

  void reduce_by(Reduce reduce, const EngineCall& call) {
    const ReduceOp op = operation_of(combine_of(call.op));
    const DType dtype = call.data.dtype();
    const char number = dtype == DType::f32 ? 'f' : dtype == DType::i32 ? 'i' : '\0';
    const char operation = op == ReduceOp::min ? '<' : op == ReduceOp::max ? '>' : '+';
    MpiRequest* request = nullptr;
    require_none(mpi_.call(reduce, call.data.data(), call.data.count(), static_cast<int>(dtype),
                           static_cast<int>(op), number, operation, &request));
    wait(request, call.timeout);
  }
  void wait(MpiRequest* request, std::chrono::milliseconds timeout) {
    try {
      poll(timeout, mpi_.awake(), [&] {
        if (broken_off_.load()) throw std::runtime_error("broken off");
        int done = 0;
        const char* const error = mpi_.call(mpi_->test, request, &done);
        if (error != nullptr || done != 0) request = nullptr;
        require_none(error);
        return done != 0;
      });
    } catch (...) {
      if (request != nullptr) mpi_->abandon(request);
      throw;
    }
  }

  Mpi mpi_;
  int processes_;
  std::atomic<bool> broken_off_{false};
};

/// MPI_Init may return while MPI has not begun in other processes: Slurm's PMIx lets those of a
/// machine go when all of that machine have come. A message that comes so early ends Open MPI.
void await_mpi_in_all(JoinedGroup& group, double timeout_seconds) {
  const auto key = [](int process) { return fmt::format("MPI in process {}", process); };
  group.rendezvous().set(key(group.process()), "has begun");
  for (int process = 0; process < group.processes(); ++process) {
    group.rendezvous().get(key(process), timeout_seconds);
  }
}

CommError cannot_begin(const JoinedGroup& group, const char* error) {
  return CommError(fmt::format("MPI cannot begin in process {}: {}; use --transport gloo",
                               group.process(), error));
}

}  // namespace

ConnectChannel connect_mpi(JoinedGroup& group, double timeout_seconds, ConnectChannel on_machine) {
  const std::string& launcher = group.rendezvous().position().launcher;
  if (launcher == "ringlet" || launcher == "torchrun") {
    throw CommError(
        fmt::format("--transport mpi is for processes that mpirun or srun has started, and these "
                    "were started {}; start them so, or use --transport gloo",
                    launcher == "ringlet" ? "by --processes N" : "by torchrun, or by hand"));
  }
  int rank = 0, size = 0;
  const MpiModule& mpi = module();
  if (const char* error = mpi.open(&rank, &size, reduce_elements)) throw cannot_begin(group, error);
  if (rank != group.process() || size != group.processes()) {
    throw CommError(
        fmt::format("MPI has process {} as its number {} of {}, and {} says number {} of {}; start "
                    "all by one mpirun, or by srun --mpi=pmix",
                    group.process(), rank, size, launcher, group.process(), group.processes()));
  }
  await_mpi_in_all(group, timeout_seconds);
  if (const char* error = mpi.join()) throw cannot_begin(group, error);
  const int ranks_here = group.replicas() * static_cast<int>(group.processes_here().size());
  const auto awake = spin_time(ranks_here, group.processors(timeout_seconds));
  return join_between(group, std::make_shared<MpiEngine>(mpi, size, awake), std::move(on_machine));
}

}  // namespace ringlet::comm
