#include "train/loop/stage_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <utility>

namespace ringlet::train {

namespace {

/// Where the whole model's registry has each name.
template <class Owner>
std::vector<std::size_t> places_of(const std::vector<Owner*>& part,
                                   const std::vector<Owner*>& whole) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < whole.size(); ++i) by_name.emplace(whole[i]->name, i);
  std::vector<std::size_t> places;
  for (const Owner* owner : part) places.push_back(by_name.at(owner->name));
  return places;
}

/// With a tensor for each of the state's values, or of its buffers, and as long; of one parameter's
/// rows with one.
HostArena empty_arena(const ArenaSpec& spec, const HostState& state) {
  if (spec.is_of_parameters()) return {spec, state.values};
  if (spec.is_of_buffers()) return {spec, state.buffers};
  return {spec, std::vector<std::vector<float>>(1)};
}

/// The state's numbers one behind the other, and back. Counters and the loss scale keep their bits.
class Packing {
 public:
  explicit Packing(std::vector<float>& floats, bool unpacks) : floats_(floats), unpacks_(unpacks) {}

  void add(std::vector<float>& numbers) {
    std::int64_t size = std::ssize(numbers);
    add_bytes(size);
    if (!unpacks_) floats_.insert(floats_.end(), numbers.begin(), numbers.end());
    if (!unpacks_) return;
    require(size == 0 || size == std::ssize(numbers), "StageState",
            "a stage's state has a tensor of another size");
    const float* const begin = take(size);
    numbers.assign(begin, begin + size);
  }
  template <class T>
  void add_bytes(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    constexpr std::int64_t kFloats = (sizeof(T) + sizeof(float) - 1) / sizeof(float);
    if (unpacks_) {
      std::memcpy(static_cast<void*>(&value), take(kFloats), sizeof(T));
    } else {
      floats_.resize(floats_.size() + kFloats);
      std::memcpy(floats_.data() + floats_.size() - kFloats, &value, sizeof(T));
    }
  }

 private:
  const float* take(std::int64_t count) {
    const float* const at = floats_.data() + next_;
    next_ += static_cast<std::size_t>(count);
    require(next_ <= floats_.size(), "StageState", "a stage's state is shorter than its tensors");
    return at;
  }

  std::vector<float>& floats_;
  const bool unpacks_;
  std::size_t next_ = 0;
};

/// Of weights alone there are no arenas.
void pack(HostState& state, std::vector<float>& floats, bool unpacks) {
  Packing packing(floats, unpacks);
  bool has_arenas = !state.optimizer.empty(), has_scale = state.loss_scale.has_value();
  packing.add_bytes(has_arenas);
  packing.add_bytes(has_scale);
  if (!has_arenas) state.optimizer.clear();
  if (!has_scale) state.loss_scale.reset();
  for (auto& values : state.values) packing.add(values);
  for (auto& values : state.buffers) packing.add(values);
  for (std::int64_t& count : state.counters) packing.add_bytes(count);
  for (HostArena& arena : state.optimizer) {
    for (auto& numbers : arena.tensors) packing.add(numbers);
  }
  if (state.loss_scale) packing.add_bytes(*state.loss_scale);
}

}  // namespace

struct StageState::Part {
  std::unique_ptr<nn::Layer> stage;
  nn::Registry registry;
  std::vector<std::size_t> parameters, buffers, counters;  // in the whole model's registry

  /// An arena of the whole model as this stage has it; nothing where its rows are another's.
  std::optional<ArenaSpec> own(const ArenaSpec& of_whole) const {
    if (of_whole.is_of_parameters()) return of_whole;
    if (of_whole.is_of_buffers()) {
      return registry.buffers.empty() ? std::nullopt : std::optional(of_whole);
    }
    const auto at = std::ranges::find(parameters, static_cast<std::size_t>(of_whole.rows_of));
    if (at == parameters.end()) return {};
    return ArenaSpec(of_whole.name, static_cast<int>(at - parameters.begin()));
  }
  /// The other way.
  ArenaSpec whole(const ArenaSpec& own) const {
    if (!own.is_of_rows()) return own;
    return {own.name, static_cast<int>(parameters.at(static_cast<std::size_t>(own.rows_of)))};
  }

  /// A state of this stage with tensors of zeros, of arenas and a loss scale as `like` of the whole
  /// model has them.
  HostState empty(const HostState& like) const {
    HostState state;
    const auto zeros = [](const auto* owner) {
      return std::vector<float>(static_cast<std::size_t>(owner->shape.count()));
    };
    for (const auto* p : registry.parameters) state.values.push_back(zeros(p));
    for (const auto* b : registry.buffers) state.buffers.push_back(zeros(b));
    state.counters.resize(registry.counters.size());
    for (const HostArena& arena : like.optimizer) {
      const auto spec = own(arena);
      if (!spec) continue;
      HostArena& mine = state.optimizer.emplace_back(empty_arena(*spec, state));
      if (!spec->is_of_rows()) continue;
      const auto& rows = *registry.parameters[static_cast<std::size_t>(spec->rows_of)];
      mine.tensors.front().resize(static_cast<std::size_t>(rows.shape[0]));
    }
    state.loss_scale = like.loss_scale;
    return state;
  }

  /// Calls f(of the whole model, of the stage) for each tensor and counter.
  template <class F>
  void for_each(HostState& whole, HostState& own_state, F f) const {
    const auto go = [&f](auto& all, auto& mine, const std::vector<std::size_t>& places) {
      for (std::size_t i = 0; i < mine.size(); ++i) f(all[places[i]], mine[i]);
    };
    go(whole.values, own_state.values, parameters);
    go(whole.buffers, own_state.buffers, buffers);
    go(whole.counters, own_state.counters, counters);
    auto mine = own_state.optimizer.begin();
    for (HostArena& arena : whole.optimizer) {
      if (!own(arena)) continue;
      go(arena.tensors, (mine++)->tensors,
         arena.is_of_parameters() ? parameters
         : arena.is_of_buffers()  ? buffers
                                  : kOneTensor);
    }
  }

 private:
  inline static const std::vector<std::size_t> kOneTensor{0};
};

StageState::StageState(const StagesSetup& stages, const ReplicaSpec& spec, const Ranks& ranks)
    : stages_(stages),
      ranks_(ranks),
      exact_(spec.recipe.exact),
      host_(open_device({}, {.threads = 1, .overlap = false})) {
  const nn::Registry& whole = registry();
  for (const auto& stage : stages.specs) {
    ReplicaSpec of_stage = spec;
    of_stage.stage = stage;
    Part& part = parts_.emplace_back();
    part.stage = make_model(of_stage);
    part.registry = nn::register_model(*part.stage);
    part.parameters = places_of(part.registry.parameters, whole.parameters);
    part.buffers = places_of(part.registry.buffers, whole.buffers);
    part.counters = places_of(part.registry.counters, whole.counters);
  }
}

StageState::~StageState() = default;

const nn::Registry& StageState::registry() const { return stages_.registry; }

/// The length goes first.
void StageState::exchange(int to, std::vector<float>* out, int from, std::vector<float>* in) {
  Stream& stream = host_->compute();
  comm::Transport& transport = ranks_.stages->transport();
  std::int64_t size = out != nullptr ? std::ssize(*out) : 0;
  constexpr std::int64_t kBytes = sizeof(size);
  const View number(&size, {kBytes}, DType::u8);
  if (out != nullptr) transport.exchange(stream, to, number, comm::kNobody, {});
  if (in != nullptr) {
    transport.exchange(stream, comm::kNobody, {}, from, number);
    in->resize(static_cast<std::size_t>(size));
  }
  if (size == 0) return;
  const auto view = [size](std::vector<float>& floats) { return View(floats.data(), {size}); };
  if (out != nullptr) transport.exchange(stream, to, view(*out), comm::kNobody, {});
  if (in != nullptr) transport.exchange(stream, comm::kNobody, {}, from, view(*in));
}

const StageState::Part& StageState::own_part() const {
  return parts_[static_cast<std::size_t>(ranks_.stage())];
}

bool StageState::is_sharded() const {
  return registry().is_sharded() && (exact_ || ranks_.replicas.size() > 1);
}

/// In the order in which a model in one stage has them, so that each stage finds its own in theirs:
/// what a rank has and those before it lack goes before the next one of its own.
std::vector<ArenaSpec> StageState::arenas(const Optimizer& optimizer) const {
  std::string mine;
  for (const StateArena& arena : optimizer.state()) {
    const ArenaSpec spec = own_part().whole(arena);
    mine += fmt::format("{} {}\n", spec.rows_of, spec.name);
  }
  std::vector<ArenaSpec> all;
  for (const std::string& text :
       ranks_.world.gather_text(host_->communication(), mine, "what the optimisers keep")) {
    std::istringstream lines(text);
    std::vector<ArenaSpec> of_rank;
    int rows_of = 0;
    for (std::string name; lines >> rows_of && std::getline(lines >> std::ws, name);) {
      of_rank.emplace_back(name, rows_of);
    }
    auto next = all.end();
    for (auto spec = of_rank.rbegin(); spec != of_rank.rend(); ++spec) {
      const auto found = std::ranges::find(all, *spec);
      require(found == all.end() || found < next, "StageState",
              "the optimisers of the stages keep the same in different orders");
      next = found != all.end() ? found : all.insert(next, *spec);
    }
  }
  return all;
}

HostState StageState::collect(TrainStep& step, bool rows_of_loss) {
  HostState whole;
  whole.values.resize(registry().parameters.size());
  whole.buffers.resize(registry().buffers.size());
  whole.counters.resize(registry().counters.size());
  for (const ArenaSpec& arena : arenas(step.optimizer())) {
    whole.optimizer.push_back(empty_arena(arena, whole));
  }
  HostState own;
  if (ranks_.replica() == 0 || step.is_sharded()) own = step.download_state(rows_of_loss);
  if (ranks_.replica() != 0) return {};
  std::vector<float> floats;
  if (ranks_.stage() > 0) {
    pack(own, floats, false);
    exchange(0, &floats, comm::kNobody, nullptr);
    return {};
  }
  whole.loss_scale = own.loss_scale;
  for (std::size_t from = 0; from < parts_.size(); ++from) {
    if (from > 0) {
      own = parts_[from].empty(whole);
      exchange(comm::kNobody, nullptr, static_cast<int>(from), &floats);
      pack(own, floats, true);
    }
    parts_[from].for_each(whole, own, [](auto& all, auto& mine) { all = std::move(mine); });
  }
  return whole;
}

std::optional<HostState> StageState::hand_out(TrainStep& step, const HostState* read) {
  HostState whole = read != nullptr ? *read : HostState{};
  for (const ArenaSpec& arena : arenas(step.optimizer())) {
    if (read == nullptr) whole.optimizer.push_back(empty_arena(arena, HostState{}));
  }
  if (ranks_.replica() != 0) return {};
  std::vector<float> floats;
  if (ranks_.stage() > 0) {
    exchange(comm::kNobody, nullptr, 0, &floats);
    if (floats.empty()) return {};
    if (step.scales_loss()) whole.loss_scale.emplace();
    HostState own = own_part().empty(whole);
    pack(own, floats, true);
    step.upload_state(own);
    return own;
  }
  whole.values.resize(registry().parameters.size());  // of what was not read there is nothing
  whole.buffers.resize(registry().buffers.size());
  whole.counters.resize(registry().counters.size());
  for (std::size_t to = parts_.size(); to-- > 0;) {
    if (read == nullptr) {
      if (to > 0) exchange(static_cast<int>(to), &floats, comm::kNobody, nullptr);
      continue;
    }
    HostState part = parts_[to].empty(whole);
    parts_[to].for_each(whole, part, [](auto& all, auto& mine) { mine = std::move(all); });
    if (to == 0) {
      step.upload_state(part);
      return part;
    }
    floats.clear();
    pack(part, floats, false);
    exchange(static_cast<int>(to), &floats, comm::kNobody, nullptr);
  }
  return {};
}

}  // namespace ringlet::train
