#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/collectives.h"
#include "comm/core/flat.h"
#include "comm/core/rank_text.h"
#include "comm/report/answer_watch.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"

namespace ringlet::comm {

namespace {

/// Memory as a view of bytes.
View bytes_at(void* data, std::int64_t bytes) { return {data, {bytes}, DType::u8}; }
ConstView bytes_at(const void* data, std::int64_t bytes) { return {data, {bytes}, DType::u8}; }

/// What the next exchanges are about. Traces alone ask for it.
void note_subject(Transport& transport, const Stream& stream, const View& data) {
  if (stream.tracer() != nullptr) transport.set_subject(data);
}

void require_reducible(const char* operation, const View& data) {
  require(!data.absent() || data.storage() == 0, operation, "there is no tensor to reduce");
  require(data.dtype() != DType::u8, operation,
          "bytes cannot be reduced, but f32, f16, bf16 and i32 can");
}

}  // namespace

Communicator::Communicator(Transport& transport, const CommunicatorOptions& options)
    : transport_(transport),
      strategies_(options.strategies),
      all_reduce_(strategies_.make(options.strategy, transport, options.table)),
      host_(open_device({}, {.threads = 1, .overlap = false})),
      hashes_(static_cast<std::size_t>(transport.size())) {
  transport_.set_timeout(options.timeout_seconds);
}

Communicator::~Communicator() = default;

/// This communicator's own, where that narrows; else the first that does.
const Strategy& Communicator::narrowing() const {
  constexpr auto kNarrows = &Strategy::narrows_between;
  const char* const own = strategy();
  return *strategies_.find(strategies_.has(own, kNarrows) ? own : strategies_.first_with(kNarrows));
}

std::optional<double> Communicator::predicted_seconds(std::int64_t bytes, DType between) const {
  const Strategy* const strategy =
      between == DType::f32 ? strategies_.find(strategy_for(bytes)) : &narrowing();
  if (strategy == nullptr) return {};
  const double length = static_cast<double>(size_of(between)) / size_of(DType::f32);
  return comm::predicted_seconds(*strategy, transport_, static_cast<double>(bytes), length);
}

StrategyTable Communicator::table() const {
  const auto* const picks = dynamic_cast<const AutoAllReduce*>(all_reduce_.get());
  return picks == nullptr ? StrategyTable() : picks->table();
}

bool Communicator::goes_by_costs() const {
  const auto* const picks = dynamic_cast<const AutoAllReduce*>(all_reduce_.get());
  return picks != nullptr && picks->goes_by_costs();
}

void Communicator::use(const StrategyTable& table) {
  all_reduce_ = strategies_.make(strategy(), transport_, table);
}

ProbeResult Communicator::probe(Stream& stream, const ProbeOptions& options) {
  Tensor memory(allocator(*host_), {options.largest / size_of(DType::f32)}, DType::f32);
  fill(host_->communication(), 0, memory);
  ProbeResult result;
  host_collective(stream, CollectiveKind::all_reduce, options.largest, "probe", [&](Stream& host) {
    result = comm::probe(transport_, strategies_, host, memory, options);
  });
  return result;
}

template <class Body>
void Communicator::collective(Stream& stream, const Collective& what, Body body) {
  ScopedSpan span(stream.tracer(), what.name, "collective", what.bytes);
  transport_.recorder().enter(what.kind, what.bytes, what.name, what.root);
  if (span.traces()) describe(span.details(), what);
  try {
    body();
  } catch (const Aborted&) {
    throw;
  } catch (...) {
    const std::string message = message_of_current_exception();
    if (span.traces()) span.details().error = message;
    abort(message);
    throw;
  }
  if (span.traces()) transport_.set_subject({});
  transport_.recorder().leave();
}

void Communicator::describe(ExchangeDetails& details, const Collective& what) {
  details.call = transport_.recorder().current().sequence;
  details.axis = transport_.whole().line().axis;
  details.ranks = size();
  if (what.reduces) {
    details.type = name_of(*what.reduces);
    details.reduce = name_of(what.op);
  }
}

template <class Body>
void Communicator::host_collective(Stream& stream, CollectiveKind kind, std::int64_t bytes,
                                   std::string_view name, Body body) {
  stream.synchronize();  // also: the recorder and the transport serve one thread at a time
  Stream& host = host_->communication();
  host.set_tracer(stream.tracer());
  collective(host, {kind, bytes, name}, [&] { body(host); });
}

void Communicator::require_alive() const {
  if (const auto cause = transport_.root_cause())
    throw_stopped(*cause, transport_.in_world(rank()));
}

// The tasks capture addresses and lengths rather than views, to stay within a Task's 64 bytes.

void Communicator::all_reduce(Stream& stream, View data, std::string_view name, ReduceOp op) {
  require_reducible("all_reduce", data);
  stream.run([this, &stream, to = flat(data), name, op] {
    collective(stream, {CollectiveKind::all_reduce, to.bytes(), name, to.dtype, op}, [&] {
      if (stream.tracer() != nullptr) transport_.set_subject(to.view());
      if (!all_reduce_->run_short(stream, to, op)) all_reduce_->run(stream, to.view(), op);
    });
  });
}

void Communicator::all_reduce_narrow_between(Stream& stream, View data, View wire,
                                             std::string_view name) {
  require(data.dtype() == DType::f32 && wire.count() >= data.storage(), "all_reduce_narrow_between",
          "sums f32, with a wire as long");
  if (!between_) between_ = narrowing().make(transport_);
  stream.run([this, &stream, to = data.address(), count = data.storage(), through = wire.address(),
              dtype = wire.dtype(), name] {
    const View sums(to, {count}, DType::f32);
    const auto sum = ReduceOp::sum;
    collective(stream, {CollectiveKind::all_reduce, sums.bytes(), name, sums.dtype(), sum}, [&] {
      note_subject(transport_, stream, sums);
      between_->run_narrow(stream, sums, View(through, {count}, dtype));
    });
  });
}

void Communicator::reduce(Stream& stream, int root, View data, std::string_view name, ReduceOp op) {
  require_reducible("reduce", data);
  stream.run([this, &stream, to = flat(data), name, root, op] {
    collective(stream, {CollectiveKind::reduce, to.bytes(), name, to.dtype, op, root}, [&] {
      const View view = to.view();
      note_subject(transport_, stream, view);
      comm::reduce(transport_, stream, root, view, op);
    });
  });
}

void Communicator::reduce_scatter(Stream& stream, View data, std::string_view name, ReduceOp op) {
  require_reducible("reduce_scatter", data);
  stream.run([this, &stream, to = flat(data), name, op] {
    collective(stream, {CollectiveKind::reduce_scatter, to.bytes(), name, to.dtype, op}, [&] {
      const View view = to.view();
      note_subject(transport_, stream, view);
      comm::reduce_scatter(transport_, stream, view, op);
    });
  });
}

void Communicator::all_to_all(Stream& stream, ConstView out, View in, std::string_view name) {
  require(out.bytes() == in.bytes() && out.bytes() % size() == 0, "all_to_all",
          "both have the same bytes, a multiple of the ranks");
  stream.run([this, &stream, from = out.address(), bytes = in.bytes(), into = in.address(), name] {
    collective(stream, {CollectiveKind::all_to_all, bytes, name}, [&] {
      comm::all_to_all(transport_, stream, bytes_at(from, bytes), bytes_at(into, bytes));
    });
  });
}

void Communicator::broadcast(Stream& stream, int root, View data, std::string_view name) {
  stream.run([this, &stream, root, address = data.address(), bytes = data.bytes(), name] {
    collective(stream, {CollectiveKind::broadcast, bytes, name, {}, ReduceOp::sum, root},
               [&] { comm::broadcast(transport_, stream, root, bytes_at(address, bytes)); });
  });
}

void Communicator::all_gather(Stream& stream, ConstView mine, View all, std::string_view name) {
  require(all.bytes() == size() * mine.bytes(), "all_gather",
          "the result has as many bytes as all ranks' parts together");
  stream.run([this, &stream, from = mine.address(), bytes = mine.bytes(), into = all.address(),
              name] {
    collective(stream, {CollectiveKind::all_gather, bytes, name}, [&] {
      comm::all_gather(transport_, stream, bytes_at(from, bytes), bytes_at(into, size() * bytes));
    });
  });
}

void Communicator::graph_launched(Stream& stream, std::int64_t bytes, std::string_view name) {
  stream.run([this, &stream, bytes, name] {
    collective(stream, {CollectiveKind::all_reduce, bytes, name},
               [this] { transport_.captures()->graph_launched(); });
  });
}

void Communicator::barrier(Stream& stream, std::string_view name) {
  host_collective(stream, CollectiveKind::barrier, 0, name,
                  [this](Stream& host) { comm::barrier(transport_, host); });
}

void Communicator::make_room(Stream& stream, std::int64_t bytes) {
  constexpr std::int64_t kBeside = 4096;  // what a transport keeps beside the data
  stream.run([&stream, bytes] { stream.workspace(bytes + kBeside); });
}

void Communicator::meet_before_kernels(Stream& stream, std::int64_t bytes, std::string_view name) {
  if (size() == 1 || !transport_.waits_in_kernels()) return;
  make_room(stream, bytes);
  barrier(stream, name);
}

void Communicator::await_all(Stream& stream, std::string_view name) {
  stream.synchronize();  // the time-out is not to change under a collective
  const double timeout = transport_.timeout_seconds();
  const AnswerWatch watch(transport_, timeout, std::string(name));
  transport_.set_timeout(std::numeric_limits<double>::infinity());
  try {
    barrier(stream, name);
  } catch (const Aborted& aborted) {  // nobody waits for anybody any more
    if (aborted.cause().rank != transport_.in_world(rank())) throw;
    throw TimeoutError(aborted.cause().message);  // the watch spoke for this rank
  }
  transport_.set_timeout(timeout);
}

std::vector<std::string> Communicator::gather_text(Stream& stream, const std::string& mine,
                                                   std::string_view name) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto gather = [&](const void* from, std::size_t bytes, void* into) {
    const auto each = static_cast<std::int64_t>(bytes);
    host_collective(stream, CollectiveKind::all_gather, each, name, [&](Stream& host) {
      comm::all_gather(transport_, host, bytes_at(from, each), bytes_at(into, size() * each));
    });
  };
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(ranks);
  gather(&length, sizeof length, lengths.data());

  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = mine;
  padded.resize(longest);
  std::string all(ranks * longest, '\0');
  gather(padded.data(), longest, all.data());

  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r) texts.push_back(all.substr(r * longest, lengths[r]));
  return texts;
}

void Communicator::require_equal(Stream& stream, const Plan& plan) {
  const std::string difference = find_difference(gather_text(stream, to_text(plan), "plan"));
  if (!difference.empty()) {
    throw MismatchError(difference + where_ranks_are() +
                        "; start every process with the same program, flags and data");
  }
}

/// " (ranks 0 and 1 are on a, ...)" in a world on several machines.
std::string Communicator::where_ranks_are() const {
  const std::string hosts = transport_.hosts();
  return hosts.empty() ? "" : " (" + hosts + ")";
}

std::uint64_t Communicator::hash_of(Stream& stream, const ConstView& data) {
  constexpr std::int64_t kPiece = 1 << 20;
  const ConstView flat = bytes_at(data.data(), data.bytes());
  std::array<std::uint64_t, 2> chain{};  // the hash so far, and the next piece's
  for (std::int64_t begin = 0; begin < flat.count(); begin += kPiece) {
    const ConstView piece = flat.slice(begin, std::min(begin + kPiece, flat.count()));
    const void* on_host = piece.data();
    if (!stream.in_order_with_host()) {
      piece_.resize(kPiece);
      copy_to_host(stream, piece, piece_.data());
      on_host = piece_.data();
    }
    chain[1] = hash_bytes(on_host, static_cast<std::size_t>(piece.bytes()));
    chain[0] = hash_bytes(chain.data(), sizeof chain);
  }
  return chain[0];
}

void Communicator::require_identical(Stream& stream, ConstView data, std::string_view name) {
  stream.synchronize();
  const std::uint64_t mine = hash_of(stream, data);
  constexpr std::int64_t kBytes = sizeof mine;
  host_collective(stream, CollectiveKind::all_gather, kBytes, name, [this, &mine](Stream& host) {
    comm::all_gather(transport_, host, bytes_at(&mine, kBytes),
                     bytes_at(hashes_.data(), size() * kBytes));
  });
  if (std::all_of(hashes_.begin(), hashes_.end(), [mine](auto hash) { return hash == mine; })) {
    return;
  }
  std::vector<std::string> texts;
  for (const std::uint64_t hash : hashes_) texts.push_back(fmt::format("{:016x}", hash));
  throw MismatchError(fmt::format(
      "the replicas' {} differ, by their hashes: {}{}; memory or a device is at fault, or "
      "Ringlet: go on from the last saved state",
      name, text_of_values(texts), where_ranks_are()));
}

}  // namespace ringlet::comm
