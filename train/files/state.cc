#include "train/files/state.h"

#include <limits>
#include <string>
#include <system_error>

#include "kernels/host_copy.h"
#include "nn/row_major.h"
#include "train/files/atomic_file.h"
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
  for (const auto* p : registry.parameters) specs.push_back({p->name, "F32", extents(p->shape)});
  for (const auto* b : registry.buffers) specs.push_back({b->name, "F32", extents(b->shape)});
  for (const auto* c : registry.counters) specs.push_back({c->name, "I64", {}});
  return specs;
}

/// The tensors of optimizer.safetensors, arena by arena.
std::vector<TensorSpec> optimizer_specs(const nn::Registry& registry,
                                        const std::vector<std::string>& arenas) {
  std::vector<TensorSpec> specs;
  for (const std::string& arena : arenas) {
    const std::string prefix = arenas.size() == 1 ? "" : arena + "/";
    for (const auto* p : registry.parameters) {
      specs.push_back({prefix + p->name, "F32", extents(p->shape)});
    }
  }
  return specs;
}

std::vector<std::string> names_of(const std::vector<HostArena>& arenas) {
  std::vector<std::string> names;
  for (const HostArena& arena : arenas) names.push_back(arena.name);
  return names;
}

std::vector<float> values_of(const SafetensorsFile& file, const std::string& name) {
  const auto values = file.f32(name);
  return {values.begin(), values.end()};
}

/// Throws FileError for a number that training cannot count on from.
std::int64_t count_of(const SafetensorsFile& file, const std::string& name) {
  const std::int64_t count = file.i64(name).front();
  if (0 <= count && count <= std::numeric_limits<std::int32_t>::max()) return count;
  throw FileError(file.path().string() + ": '" + name + "' is " + std::to_string(count) +
                  ", which no count of batches is; write it again without it");
}

/// PyTorch's own format is a program, which nobody should run to read weights.
void require_no_pickle(const fs::path& path) {
  const std::string extension = path.extension().string();
  for (const char* pickled : {".pth", ".pt", ".ckpt"}) {
    if (extension != pickled) continue;
    throw FileError(path.string() +
                    " is a pickle by its name, which only PyTorch reads; write safetensors there: "
                    "safetensors.torch.save_file(torch.load(FILE, weights_only=True), NEW)");
  }
}

/// "fc.": the last layer's prefix, where all that the file's has other than the model's is the
/// number of its outputs; else empty.
std::string head_of_another_size(const SafetensorsFile& file, const nn::Registry& registry) {
  if (registry.parameters.empty()) return {};
  const std::string& last = registry.parameters.back()->name;
  const std::string prefix = last.substr(0, last.rfind('.') + 1);
  bool differs = false;
  for (const auto* p : registry.parameters) {
    if (prefix.empty() || !p->name.starts_with(prefix)) continue;
    const SafetensorsFile::Entry* entry = file.find(p->name);
    if (entry == nullptr || entry->spec.dtype != "F32") return {};
    std::vector<std::int64_t> shape = extents(p->shape);
    if (entry->spec.shape.size() != shape.size() || shape.empty()) return {};
    differs = differs || entry->spec.shape[0] != shape[0];
    shape[0] = entry->spec.shape[0];
    if (entry->spec.shape != shape) return {};
  }
  return differs ? prefix : std::string();
}

[[noreturn]] void throw_other_head(const SafetensorsFile& file, const nn::Registry& registry,
                                   const std::string& head) {
  const nn::Parameter& last = *registry.parameters.back();
  throw FileError(file.path().string() + ": its last layer, " + head.substr(0, head.size() - 1) +
                  ", is for " + std::to_string(file.find(last.name)->spec.shape[0]) +
                  " classes, and the data has " + std::to_string(last.shape[0]) +
                  "; to train, --replace-head takes all else and lets it start anew");
}

}  // namespace

HostState download(Device& device, const nn::Parameters& parameters,
                   std::span<const StateArena> optimizer) {
  HostState state;
  Stream& stream = device.compute();
  for (const auto* p : parameters.registry().parameters) {
    state.values.push_back(nn::to_rows(stream, p->value));
  }
  for (const StateArena& arena : optimizer) {
    HostArena& on_host = state.optimizer.emplace_back(HostArena{arena.name, {}});
    for (const auto* p : parameters.registry().parameters) {
      const View part = part_of(arena.numbers.view(), parameters, p->id);
      on_host.tensors.push_back(nn::to_rows(stream, part));
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
    if (state.values[i].empty()) continue;  // the head, which starts anew
    nn::from_rows(stream, state.values[i].data(), registry.parameters[i]->value);
  }
  for (std::size_t i = 0; i < state.buffers.size(); ++i) {
    copy_from_host(stream, state.buffers[i].data(), registry.buffers[i]->value);
  }
  for (std::size_t i = 0; i < state.counters.size(); ++i) {
    const auto count = static_cast<std::int32_t>(state.counters[i]);
    copy_from_host(stream, &count, registry.counters[i]->value);
  }
  for (std::size_t a = 0; a < state.optimizer.size(); ++a) {
    const HostArena& arena = state.optimizer[a];
    for (std::size_t i = 0; i < arena.tensors.size(); ++i) {
      nn::from_rows(stream, arena.tensors[i].data(),
                    part_of(optimizer[a].numbers.view(), parameters, static_cast<int>(i)));
    }
  }
}

void save_model(const fs::path& file, const nn::Registry& registry, const HostState& state,
                const ModelInfo& info) {
  std::vector<TensorToWrite> tensors;
  const auto specs = model_specs(registry);
  const auto add = [&](const void* data) { tensors.push_back({specs[tensors.size()], data}); };
  for (const auto& values : state.values) add(values.data());
  for (const auto& values : state.buffers) add(values.data());
  for (const std::int64_t& count : state.counters) add(&count);
  write_safetensors(file, tensors, to_metadata(info));
}

HostState load_model(const fs::path& path, const nn::Registry& registry, Head head) {
  require_no_pickle(path);
  SafetensorsFile file(path);
  while (file.strip_prefix("module.") || file.strip_prefix("_orig_mod.")) {
  }
  const std::string other = head_of_another_size(file, registry);
  const auto starts_anew = [&](const std::string& name) {
    return !other.empty() && name.starts_with(other);
  };
  std::vector<TensorSpec> specs = model_specs(registry);
  for (TensorSpec& spec : specs) {
    if (starts_anew(spec.name)) spec = file.find(spec.name)->spec;
  }
  try {
    file.match(specs);
  } catch (const FileError&) {
    file.match(model_specs(registry));  // names the head as well
    throw;
  }
  if (!other.empty() && head == Head::as_in_file) throw_other_head(file, registry, other);
  HostState state;
  for (const auto* p : registry.parameters) {
    state.values.push_back(starts_anew(p->name) ? std::vector<float>{} : values_of(file, p->name));
  }
  for (const auto* b : registry.buffers) state.buffers.push_back(values_of(file, b->name));
  for (const auto* c : registry.counters) state.counters.push_back(count_of(file, c->name));
  return state;
}

void save_state(const fs::path& out, const nn::Registry& registry, const HostState& state,
                const ModelInfo& info, const Recipe& recipe, const Progress& progress,
                std::uint64_t data_hash, FormerState former) {
  AtomicDirectory folder(out / "state");
  save_model(folder.path() / "model.safetensors", registry, state, info);
  std::vector<TensorToWrite> tensors;
  const auto specs = optimizer_specs(registry, names_of(state.optimizer));
  for (const HostArena& arena : state.optimizer) {
    for (const auto& numbers : arena.tensors) {
      tensors.push_back({specs[tensors.size()], numbers.data()});
    }
  }
  write_safetensors(folder.path() / "optimizer.safetensors", tensors);
  write_file_atomically(folder.path() / "state.json",
                        format_state_json({recipe, progress, data_hash, state.loss_scale}));
  const fs::path before = out / kStateBefore;
  if (former == FormerState::kept) return folder.commit(before);
  folder.commit();
  std::error_code error;
  fs::remove_all(before, error);
}

SavedState read_state(const fs::path& out) {
  AtomicDirectory::recover(out / "state");
  SavedState saved;
  std::error_code error;
  const bool is_state =
      !fs::exists(out / "state/state.json", error) && fs::exists(out / "state.json", error);
  saved.folder = is_state ? out : out / "state";
  const fs::path path = saved.folder / "state.json";
  if (fs::status(path, error).type() == fs::file_type::not_found)
    throw FileError(path.string() + " cannot be read; is this the --out of a run?");
  static_cast<StateJson&>(saved) = read_state_json(path);
  return saved;
}

HostState load_state(const SavedState& saved, const nn::Registry& registry,
                     const std::vector<std::string>& arenas) {
  HostState state = load_model(saved.folder / "model.safetensors", registry);
  const SafetensorsFile file(saved.folder / "optimizer.safetensors");
  const auto specs = optimizer_specs(registry, arenas);
  file.match(specs);
  for (const std::string& arena : arenas) state.optimizer.push_back({arena, {}});
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto& tensors = state.optimizer[i / registry.parameters.size()].tensors;
    tensors.push_back(values_of(file, specs[i].name));
  }
  state.loss_scale = saved.loss_scale;
  return state;
}

}  // namespace ringlet::train
