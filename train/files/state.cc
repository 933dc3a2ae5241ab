#include "train/files/state.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "base/files/atomic_file.h"
#include "base/files/posix_file.h"
#include "kernels/host_copy.h"
#include "nn/row_major.h"
#include "train/files/centres.h"
#include "train/files/load_model.h"
#include "train/files/row_files.h"
#include "train/files/safetensors.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

std::vector<std::int64_t> extents(const Shape& shape) {
  std::vector<std::int64_t> list;
  for (int i = 0; i < shape.rank(); ++i) list.push_back(shape[i]);
  return list;
}

/// The part of an arena-shaped view that belongs to the parameter at registration order `id`.
View part_of(const View& arena, const nn::Parameters& parameters, int id) {
  for (const nn::PlannedParameter& planned : parameters.plan().parameters) {
    if (planned.id == id) return parameters.part_of(arena, planned);
  }
  throw ContractError("state: the plan has no parameter " + std::to_string(id));
}

std::vector<TensorSpec> model_specs(const nn::Registry& registry) {
  std::vector<TensorSpec> specs;
  for (const auto* p : registry.parameters) {
    if (!p->of_loss) specs.push_back({p->name, "F32", extents(p->shape)});
  }
  for (const auto* b : registry.buffers) specs.push_back({b->name, "F32", extents(b->shape)});
  for (const auto* c : registry.counters) specs.push_back({c->name, "I64", {}});
  return specs;
}

/// The part of an arena of buffers that belongs to one of them.
View part_of(const View& arena, const nn::Parameters& parameters, const nn::StateBuffer& buffer) {
  const std::int64_t begin = buffer.value.f32() - parameters.buffers().f32();
  return arena.slice(begin, begin + buffer.shape.count()).reshaped(buffer.shape);
}

/// Whether tensor `i` of an arena belongs to a parameter of the loss.
bool is_of_loss(const nn::Registry& registry, const ArenaSpec& arena, std::size_t i) {
  if (arena.is_of_buffers()) return false;
  return registry.parameters[arena.is_of_rows() ? static_cast<std::size_t>(arena.rows_of) : i]
      ->of_loss;
}

/// The tensors of optimizer.safetensors, arena by arena; `rows_apart`: without those of the loss.
std::vector<TensorSpec> optimizer_specs(const nn::Registry& registry,
                                        const std::vector<ArenaSpec>& arenas, bool rows_apart) {
  std::vector<TensorSpec> specs;
  for (const ArenaSpec& arena : arenas) {
    const std::string prefix = arenas.size() == 1 ? "" : arena.name + "/";
    if (arena.is_of_buffers()) {
      for (const auto* b : registry.buffers) {
        specs.push_back({prefix + b->name, "F32", extents(b->shape)});
      }
      continue;
    }
    for (const auto* p : registry.parameters) {
      if (rows_apart && p->of_loss) continue;
      if (arena.is_of_parameters()) {
        specs.push_back({prefix + p->name, "F32", extents(p->shape)});
      } else if (arena.rows_of == p->id) {
        specs.push_back({prefix + p->name, "F32", {p->shape[0]}});
      }
    }
  }
  return specs;
}

}  // namespace

HostState download(Device& device, const nn::Parameters& parameters,
                   std::span<const StateArena> optimizer, bool rows_of_loss) {
  HostState state;
  Stream& stream = device.compute();
  const auto& all = parameters.registry().parameters;
  const auto is_wanted = [&](const nn::Parameter* p) { return rows_of_loss || !p->of_loss; };
  for (const auto* p : all) {
    auto& values = state.values.emplace_back();
    if (is_wanted(p)) values = nn::to_rows(stream, p->value);
  }
  for (const StateArena& arena : optimizer) {
    HostArena& on_host = state.optimizer.emplace_back(arena, std::vector<std::vector<float>>{});
    if (arena.is_of_buffers()) {
      for (const auto* b : parameters.registry().buffers) {
        on_host.tensors.push_back(
            nn::to_rows(stream, part_of(arena.numbers.view(), parameters, *b)));
      }
      continue;
    }
    if (arena.is_of_rows()) {
      auto& numbers = on_host.tensors.emplace_back();
      const bool wanted = is_wanted(all[static_cast<std::size_t>(arena.rows_of)]);
      if (wanted) numbers = nn::to_rows(stream, arena.numbers.view());
      continue;
    }
    for (const auto* p : all) {
      auto& numbers = on_host.tensors.emplace_back();
      if (!is_wanted(p)) continue;
      numbers = nn::to_rows(stream, part_of(arena.numbers.view(), parameters, p->id));
    }
  }
  for (const auto* b : parameters.registry().buffers) {
    state.buffers.push_back(nn::to_rows(stream, b->value));
  }
  for (const auto* c : parameters.registry().counters) {
    std::int32_t count = 0;
    copy_to_host(stream, c->value, &count);
    state.counters.push_back(count);
  }
  return state;
}

void upload(Device& device, const HostState& state, const nn::Parameters& parameters,
            std::span<const StateArena> optimizer) {
  Stream& stream = device.compute();
  const nn::Registry& registry = parameters.registry();
  for (std::size_t i = 0; i < state.values.size(); ++i) {
    if (state.values[i].empty()) continue;  // the head, which starts anew, or rows apart
    nn::from_rows(stream, state.values[i].data() + registry.parameters[i]->first_held(),
                  registry.parameters[i]->value);
  }
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    if (state.buffers[i].empty()) continue;  // as they start
    copy_from_host(stream, state.buffers[i].data(), registry.buffers[i]->value);
  }
  for (std::size_t i = 0; i < state.counters.size(); ++i) {
    const auto count = static_cast<std::int32_t>(state.counters[i]);
    copy_from_host(stream, &count, registry.counters[i]->value);
  }
  for (std::size_t a = 0; a < state.optimizer.size(); ++a) {
    const HostArena& arena = state.optimizer[a];
    require(a < optimizer.size() && arena == optimizer[a], "upload",
            "the state's arenas are not the optimiser's, or in another order");
    if (arena.is_of_buffers()) {
      for (std::size_t i = 0; i < arena.tensors.size(); ++i) {
        if (arena.tensors[i].empty()) continue;
        copy_from_host(stream, arena.tensors[i].data(),
                       part_of(optimizer[a].numbers.view(), parameters, *registry.buffers[i]));
      }
      continue;
    }
    if (arena.is_of_rows()) {
      if (arena.tensors.front().empty()) continue;  // rows apart
      const auto* parameter = registry.parameters[static_cast<std::size_t>(arena.rows_of)];
      nn::from_rows(stream, arena.tensors.front().data() + parameter->rows.begin,
                    optimizer[a].numbers.view());
      continue;
    }
    for (std::size_t i = 0; i < arena.tensors.size(); ++i) {
      if (arena.tensors[i].empty()) continue;
      nn::from_rows(stream, arena.tensors[i].data() + registry.parameters[i]->first_held(),
                    part_of(optimizer[a].numbers.view(), parameters, static_cast<int>(i)));
    }
  }
}

std::string save_model(const fs::path& file, const nn::Registry& registry, const HostState& state,
                       const ModelInfo& info) {
  std::vector<TensorToWrite> tensors;
  const auto specs = model_specs(registry);
  const auto add = [&](const void* data) { tensors.push_back({specs[tensors.size()], data}); };
  for (std::size_t i = 0; i < state.values.size(); ++i) {
    if (!registry.parameters[i]->of_loss) add(state.values[i].data());
  }
  for (const auto& values : state.buffers) add(values.data());
  for (const std::int64_t& count : state.counters) add(&count);
  Metadata metadata = to_metadata(info);
  if (has_centres(registry)) metadata[kHashOfCentres] = hash_of_centres(registry, state);
  return write_safetensors(file, tensors, metadata);
}

void save_state(const fs::path& out, const nn::Registry& registry, const HostState& state,
                const ModelInfo& info, const Recipe& recipe, const Progress& progress,
                std::uint64_t data_hash, FormerState former) {
  AtomicDirectory folder(out / "state");
  save_state(folder, out, registry, state, info, recipe, progress, data_hash, former);
}

void save_state(AtomicDirectory& folder, const fs::path& out, const nn::Registry& registry,
                const HostState& state, const ModelInfo& info, const Recipe& recipe,
                const Progress& progress, std::uint64_t data_hash, FormerState former) {
  FileSums sums;
  if (state.rows_apart) sums = state.rows_apart->sums;
  sums[kModelFile] = save_model(folder.path() / kModelFile, registry, state, info);
  if (state.rows_apart) {
    const std::string name = fs::path(kCentresFolder) / kIndexFile;
    sums[name] = save_centres_index(folder.path() / name, registry, state.rows_apart->hash, info);
  } else if (has_centres(registry)) {
    sums[kCentresFile] = save_centres(folder.path() / kCentresFile, registry, state, info);
  }
  std::vector<TensorToWrite> tensors;
  const auto specs = optimizer_specs(registry, {state.optimizer.begin(), state.optimizer.end()},
                                     state.rows_apart.has_value());
  for (const HostArena& arena : state.optimizer) {
    for (std::size_t i = 0; i < arena.tensors.size(); ++i) {
      if (state.rows_apart && is_of_loss(registry, arena, i)) continue;
      tensors.push_back({specs[tensors.size()], arena.tensors[i].data()});
    }
  }
  sums[kOptimizerFile] = write_safetensors(folder.path() / kOptimizerFile, tensors);
  write_file_atomically(folder.path() / "state.json",
                        format_state_json({recipe, progress, data_hash, state.loss_scale, sums}));
  const fs::path before = out / kStateBefore;
  if (former == FormerState::kept) return folder.commit(before);
  folder.commit();
  std::error_code error;
  fs::remove_all(before, error);
}

namespace {

void remove_former(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw posix::file_error("remove", path, error.value());
}

}  // namespace

void remove_end(const fs::path& out) {
  for (const char* name : {kModelFile, kCentresFile}) remove_former(out / name);
}

void remove_former_run(const fs::path& out) {
  remove_end(out);
  for (const char* name : {kBestModelFile, kBestFolder, kStateBefore, "state"}) {
    AtomicDirectory::recover(out / name);  // else what a killed run was replacing comes back
    remove_former(out / name);
  }
}

void save_progress(const fs::path& out, const Progress& progress) {
  const fs::path file = out / "state" / "state.json";
  StateJson state = read_state_json(file);
  state.progress = progress;
  write_file_atomically(file, format_state_json(state));
}

SavedState read_state(const fs::path& out) {
  SavedState saved;
  std::error_code error;
  const fs::path state = AtomicDirectory::current(out / "state");
  const bool is_state =
      !fs::exists(state / "state.json", error) && fs::exists(out / "state.json", error);
  saved.folder = is_state ? out : state;
  const fs::path path = saved.folder / "state.json";
  if (fs::status(path, error).type() == fs::file_type::not_found)
    throw FileError(path.string() + " cannot be read; is this the --out of a run?");
  static_cast<StateJson&>(saved) = read_state_json(path);
  return saved;
}

void require_whole(const SavedState& saved) {
  for (const char* name : {kModelFile, kCentresFile, kOptimizerFile}) {
    if (name == kCentresFile && !saved.sums.contains(name)) continue;
    require_finite_numbers(saved.folder / name, saved.sums);
  }
  for (const auto& [name, sum] : saved.sums) {
    if (fs::path(name).parent_path() != kCentresFolder) continue;  // above
    require_finite_numbers(saved.folder / name, {{fs::path(name).filename().string(), sum}});
  }
}

bool has_rows_apart(const SavedState& saved) {
  return saved.sums.contains(fs::path(kCentresFolder) / kIndexFile);
}

RowTensors row_tensors_of(const std::vector<ArenaSpec>& arenas, int parameter) {
  RowTensors tensors{{kWeightTensor}, {}};
  for (const ArenaSpec& arena : arenas) {
    if (arena.is_of_parameters()) tensors.whole.push_back(arena.name);
    if (arena.rows_of == parameter) tensors.one_number.push_back(arena.name);
  }
  return tensors;
}

namespace {

/// The loss's parameter, of files of rows, whole.
void read_rows(const SavedState& saved, const nn::Registry& registry, HostState& state) {
  const auto p =
      *std::ranges::find_if(registry.parameters, [](const auto* each) { return each->of_loss; });
  const auto id = static_cast<std::size_t>(p->id);
  const RowFiles files(saved.folder / kCentresFolder);
  const RowTensors names = row_tensors_of({state.optimizer.begin(), state.optimizer.end()}, p->id);
  files.match(p->shape[0], p->shape[1], names.whole, names.one_number);
  state.values[id] = files.weights();
  for (HostArena& arena : state.optimizer) {
    if (!arena.is_of_parameters() && arena.rows_of != p->id) continue;
    auto& numbers = arena.is_of_parameters() ? arena.tensors[id] : arena.tensors.front();
    numbers.resize(
        static_cast<std::size_t>(files.rows() * (arena.is_of_parameters() ? files.columns() : 1)));
    files.read(arena.name, 0, files.rows(), numbers.data());
  }
}

}  // namespace

HostState load_state(const SavedState& saved, const nn::Registry& registry,
                     const std::vector<ArenaSpec>& arenas, ApartRows rows) {
  const bool apart = has_rows_apart(saved);
  HostState state = load_model(saved.folder / kModelFile, registry);
  if (has_centres(registry) && !apart) {
    require_sum(saved.sums, saved.folder / kCentresFile,
                load_centres(saved.folder / kCentresFile, registry, state));
  }
  const SafetensorsFile file(saved.folder / kOptimizerFile);
  require_sum(saved.sums, file.path(), file.sum());
  const auto specs = optimizer_specs(registry, arenas, apart);
  file.match(specs);
  auto spec = specs.begin();
  for (const ArenaSpec& arena : arenas) {
    const std::size_t count = arena.is_of_buffers()      ? registry.buffers.size()
                              : arena.is_of_parameters() ? registry.parameters.size()
                                                         : 1;
    std::vector<std::vector<float>> tensors;
    for (std::size_t i = 0; i < count; ++i) {
      auto& numbers = tensors.emplace_back();
      if (apart && is_of_loss(registry, arena, i)) continue;
      numbers = floats_of(file, (spec++)->name);
    }
    state.optimizer.emplace_back(arena, std::move(tensors));
  }
  state.loss_scale = saved.loss_scale;
  if (apart && rows == ApartRows::read) read_rows(saved, registry, state);
  return state;
}

}  // namespace ringlet::train
