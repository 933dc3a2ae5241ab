#include "train/files/load_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "base/one_line.h"
#include "base/unsigned_nan.h"
#include "kernels/narrow_floats.h"
#include "nn/last_layer.h"
#include "train/files/centres.h"
#include "train/files/safetensors_header.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::train {

namespace {

namespace fs = std::filesystem;

using FileEntry = SafetensorsFile::Entry;

constexpr std::array kFloats{"F32", "F16", "BF16", "F64"};
constexpr std::array kIntegers{"I64", "I32", "I16", "I8", "U8"};

bool is_float(const std::string& dtype) {
  return std::find(kFloats.begin(), kFloats.end(), dtype) != kFloats.end();
}

/// What is taken for floats.
bool is_number(const std::string& dtype) {
  return is_float(dtype) || std::find(kIntegers.begin(), kIntegers.end(), dtype) != kIntegers.end();
}

template <class T, class Convert>
std::vector<float> converted(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(value);
  }
  return values;
}

std::vector<float> as_f32(const FileEntry& entry) {
  const auto narrow = [](auto value) { return widen(value); };
  const auto cast = [](auto value) { return static_cast<float>(value); };
  if (entry.spec.dtype == "F16") return converted<Half>(entry.bytes, narrow);
  if (entry.spec.dtype == "BF16") return converted<BFloat16>(entry.bytes, narrow);
  if (entry.spec.dtype == "F64") return converted<double>(entry.bytes, cast);
  if (entry.spec.dtype == "I64") return converted<std::int64_t>(entry.bytes, cast);
  if (entry.spec.dtype == "I32") return converted<std::int32_t>(entry.bytes, cast);
  if (entry.spec.dtype == "I16") return converted<std::int16_t>(entry.bytes, cast);
  if (entry.spec.dtype == "I8") return converted<std::int8_t>(entry.bytes, cast);
  if (entry.spec.dtype == "U8") return converted<std::uint8_t>(entry.bytes, cast);
  return converted<float>(entry.bytes, cast);
}

/// "[3, 0, 1]": where the element stands in a tensor of this shape.
std::string index_in(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; element /= shape[i]) index[i] = element % shape[i];
  return describe(index);
}

void require_all_finite(const SafetensorsFile& file, const TensorSpec& spec,
                        const std::vector<float>& values) {
  const auto is_broken = [](float value) { return !std::isfinite(value); };
  const auto first = std::find_if(values.begin(), values.end(), is_broken);
  if (first == values.end()) return;
  throw FileError(fmt::format(
      "{}: tensor '{}' has {}{} at {} (not finite: {} of its {} numbers); use weights that were "
      "saved before they broke, or look at these with --allow-nonfinite (eval, predict, export)",
      file.path().string(), spec.name, unsigned_nan(*first), spec.dtype == "F64" ? " as f32" : "",
      index_in(spec.shape, first - values.begin()), std::count_if(first, values.end(), is_broken),
      values.size()));
}

/// Throws FileError for a number that training cannot count on from.
std::int64_t count_of(const SafetensorsFile& file, const std::string& name) {
  const FileEntry* entry = file.find(name);
  if (entry == nullptr) return 0;
  const double count = entry->spec.dtype == "I64" ? static_cast<double>(file.i64(name).front())
                                                  : static_cast<double>(as_f32(*entry).front());
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  if (0 <= count && count <= kMost && count == std::floor(count)) {
    return static_cast<std::int64_t>(count);
  }
  throw FileError(
      fmt::format("{}: '{}' is {}, which no count of batches is; write it again without it",
                  file.path().string(), name, unsigned_nan(count)));
}

std::vector<std::int64_t> extents_of(const Shape& shape) {
  std::vector<std::int64_t> list;
  for (int i = 0; i < shape.rank(); ++i) list.push_back(shape[i]);
  return list;
}

/// Reads one model from one file.
class ModelReader {
 public:
  ModelReader(const SafetensorsFile& file, const nn::Registry& registry)
      : file_(file), registry_(registry), last_(registry), prefix_(prefix_of(file, registry)) {}

  HostState read(Head head, NonFinite nonfinite) const {
    if (head == Head::as_in_file) require_embedding();
    const bool other = has_head_of_another_size();
    require_fits(other);
    if (other && head == Head::as_in_file) throw_other_head();
    const auto starts_anew = [&](const auto& tensor) { return other && last_.has(tensor); };
    const auto floats = [&](const std::string& name) {
      return floats_of(file_, prefix_ + name, nonfinite);
    };
    HostState state;
    for (const auto* p : registry_.parameters) {
      state.values.push_back(p->of_loss || starts_anew(*p) ? std::vector<float>{}
                                                           : floats(p->name));
    }
    for (const auto* b : registry_.buffers) {
      state.buffers.push_back(starts_anew(*b) ? std::vector<float>{} : floats(b->name));
      if (b->stays && !starts_anew(*b)) require_start(*b, state.buffers.back());
    }
    for (const auto* c : registry_.counters) {
      state.counters.push_back(starts_anew(*c) ? 0 : count_of(file_, prefix_ + c->name));
    }
    return state;
  }

 private:
  const FileEntry* find(const std::string& name) const { return file_.find(prefix_ + name); }

  /// A tensor of floats under its name in the file, of any width that the file has.
  TensorSpec floats(const std::string& name, const Shape& shape) const {
    const FileEntry* entry = find(name);
    const bool other = entry != nullptr && is_number(entry->spec.dtype);
    return {prefix_ + name, other ? entry->spec.dtype : "F32", extents_of(shape)};
  }

  /// Nothing reads such a buffer: what the file has must be what is computed.
  void require_start(const nn::StateBuffer& buffer, const std::vector<float>& values) const {
    const auto other =
        std::ranges::find_if(values, [&](float value) { return value != buffer.start; });
    if (other == values.end()) return;
    throw FileError(fmt::format(
        "{}: '{}' is {} at [{}], and this model has {} there, which is never learnt; multiply what "
        "the layer gives by it elsewhere, or train from weights that were made with {}",
        file_.path().string(), buffer.name, *other, other - values.begin(), buffer.start,
        buffer.start));
  }

  /// What the file should hold. `other`: with the last layer that it has.
  std::vector<TensorSpec> expected(bool other) const {
    std::vector<TensorSpec> specs;
    const auto add = [&](const auto& tensor) {
      specs.push_back(other && last_.has(tensor) ? find(tensor.name)->spec
                                                 : floats(tensor.name, tensor.shape));
    };
    for (const auto* p : registry_.parameters) {
      if (!p->of_loss) add(*p);
    }
    for (const auto* b : registry_.buffers) add(*b);
    for (const auto* c : registry_.counters) {
      const FileEntry* entry = find(c->name);
      if (entry == nullptr) continue;
      specs.push_back(
          {prefix_ + c->name, is_number(entry->spec.dtype) ? entry->spec.dtype : "I64", {}});
    }
    return specs;
  }

  void require_fits(bool other) const {
    try {
      file_.match(expected(other), true);
    } catch (const FileError&) {
      file_.match(expected(false));  // names the head and what is surplus as well
      throw;
    }
    const std::vector<std::string> surplus = file_.besides(expected(other));
    if (surplus.empty()) return;
    throw FileError(fmt::format(
        "{} has more than the model: {}; write the model's tensors alone, in Python: "
        "safetensors.torch.save_file(model.state_dict(), NEW)",
        file_.path().string(), on_one_line(fmt::format("{}", fmt::join(surplus, ", ")))));
  }

  /// Whether all that the file's last layer has other than the model's is the number of outputs.
  bool has_head_of_another_size() const {
    bool differs = false;
    const auto is_head_of_any_size = [&](const auto& tensor) {
      const FileEntry* entry = find(tensor.name);
      if (entry == nullptr || !is_number(entry->spec.dtype)) return false;
      std::vector<std::int64_t> shape = extents_of(tensor.shape);
      if (entry->spec.shape.size() != shape.size() || shape.empty()) return false;
      differs = differs || entry->spec.shape[0] != shape[0];
      shape[0] = entry->spec.shape[0];
      return entry->spec.shape == shape;
    };
    const auto is_fit = [&](const auto* tensor) {
      return !last_.has(*tensor) || is_head_of_any_size(*tensor);
    };
    return std::ranges::all_of(registry_.parameters, is_fit) &&
           std::ranges::all_of(registry_.buffers, is_fit) && differs;
  }

  [[noreturn]] void throw_other_head() const {
    const nn::Parameter& last = *last_.weight();
    throw FileError(
        file_.path().string() + ": its last layer, " + last_.name() + ", is for " +
        std::to_string(find(last.name)->spec.shape[0]) + " classes, and the data has " +
        std::to_string(last.shape[0]) +
        "; to train, --fine-tune or --replace-head takes all else and lets it start anew");
  }

  /// What a model gives that learns by centres is an embedding, and no class.
  void require_embedding() const {
    const nn::Parameter* const last = last_.weight();
    if (last == nullptr || !has_centres(registry_)) return;
    const FileEntry* const entry = find(last->name);
    if (entry == nullptr || entry->spec.shape.empty()) return;
    const std::int64_t numbers = entry->spec.shape[0];
    if (numbers == last->shape[0]) return;
    throw FileError(
        fmt::format("{}: its embeddings have {} numbers, and those of this run have {}; take "
                    "--embedding-size {}",
                    file_.path().string(), numbers, last->shape[0], numbers));
  }

  const SafetensorsFile& file_;
  const nn::Registry& registry_;
  nn::LastLayer last_;
  std::string prefix_;
};

/// What stands before the most of a model's names.
std::string prefix_in(const std::vector<std::string>& names, const nn::Registry& registry) {
  if (registry.parameters.empty()) return {};
  const std::string& first = registry.parameters.front()->name;
  const std::unordered_set<std::string_view> all(names.begin(), names.end());
  std::string best;
  std::ptrdiff_t most = 0;
  for (const std::string& name : names) {
    const std::string prefix = name.substr(0, name.size() - std::min(name.size(), first.size()));
    if (name != prefix + first || !(prefix.empty() || prefix.ends_with('.'))) continue;
    const auto found = std::count_if(registry.parameters.begin(), registry.parameters.end(),
                                     [&](const auto* p) { return all.contains(prefix + p->name); });
    if (found > most) best = prefix;
    most = std::max(most, found);
  }
  return best;
}

std::vector<std::string> names_of(const SafetensorsStream& stream) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : stream.header().tensors) names.push_back(tensor.spec.name);
  return names;
}

/// SGD's state has the parameters' names and shapes, and would be taken for them.
void require_no_optimizer(const fs::path& file) {
  if (file.filename() != kOptimizerFile) return;
  throw FileError(fmt::format("{} holds an optimiser's state, not a model; name the {} beside it",
                              file.string(), kModelFile));
}

/// Reads a model, and checks it where it lies in a state. A live run may replace its state
/// meanwhile: what belongs to two of them is read once more.
std::unique_ptr<const SafetensorsFile> read_saved(const fs::path& path) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    const FileSums sums = sums_beside(path);
    auto file = std::make_unique<const SafetensorsFile>(path);
    try {
      require_sum(sums, path, file->sum());
      return file;
    } catch (const FileError&) {
      if (i == kTries || sums_beside(path) == sums) throw;
    }
  }
}

}  // namespace

fs::path model_file_of(const fs::path& named) {
  std::error_code error;
  if (!fs::is_directory(named, error)) return named;
  const fs::path finished = named / kModelFile, unfinished = named / "state" / kModelFile;
  return !fs::exists(finished, error) && fs::exists(unfinished, error) ? unfinished : finished;
}

std::string prefix_of(const SafetensorsFile& file, const nn::Registry& registry) {
  std::vector<std::string> names;
  for (const FileEntry& entry : file.entries()) names.push_back(entry.spec.name);
  return prefix_in(names, registry);
}

namespace {

/// Of the parameter's tensor in the file; nothing where it has none.
std::vector<std::int64_t> shape_in(const fs::path& file, const nn::Registry& registry,
                                   const nn::Parameter* parameter) {
  if (parameter == nullptr) return {};
  const SafetensorsStream stream(file);
  const std::string name = prefix_in(names_of(stream), registry) + parameter->name;
  const auto& tensors = stream.header().tensors;
  const auto found = std::ranges::find(tensors, name, [](const auto& t) { return t.spec.name; });
  if (found == tensors.end()) return {};
  return found->spec.shape;
}

}  // namespace

std::optional<std::int64_t> classes_in(const fs::path& file, const nn::Registry& registry) {
  const auto shape = shape_in(file, registry, nn::LastLayer(registry).weight());
  if (shape.empty()) return {};
  return shape[0];
}

std::optional<std::int64_t> channels_in(const fs::path& file, const nn::Registry& registry) {
  constexpr std::size_t kRankOfFilters = 4;
  if (registry.parameters.empty()) return {};
  const auto shape = shape_in(file, registry, registry.parameters.front());
  if (shape.size() != kRankOfFilters) return {};
  return shape[1];
}

std::string passed_over_in(const fs::path& file, const nn::Registry& registry) {
  const SafetensorsStream stream(file);
  const std::string prefix = prefix_in(names_of(stream), registry), &under = stream.header().under;
  if (prefix.empty() && under.empty()) return {};
  const std::string lie = under.empty() ? "" : "its tensors lie under '" + under + "'";
  const std::string begin = prefix.empty() ? ""
                                           : std::string(under.empty() ? "its" : ", their") +
                                                 " names begin with '" + prefix + "'";
  return file.string() + ": " + lie + begin + ", which is passed over";
}

bool TakenWeights::fits() const {
  const bool anew = last_in_file && *last_in_file != last_here;
  return tensors == wanted || (anew && rest_fits);
}

TakenWeights taken_from(const fs::path& file, const nn::Registry& registry) {
  const SafetensorsStream stream(file);
  const std::string prefix = prefix_in(names_of(stream), registry);
  std::unordered_map<std::string_view, const std::vector<std::int64_t>*> shapes;
  for (const StoredTensor& tensor : stream.header().tensors) {
    shapes[tensor.spec.name] = &tensor.spec.shape;
  }
  const nn::LastLayer last(registry);
  TakenWeights taken;
  const auto look = [&](const auto& tensor) {
    const auto found = shapes.find(prefix + tensor.name);
    const bool alike = found != shapes.end() && *found->second == extents_of(tensor.shape);
    ++taken.wanted;
    taken.tensors += alike ? 1 : 0;
    taken.rest_fits = taken.rest_fits && (alike || last.has(tensor));
  };
  for (const auto* p : registry.parameters) {
    if (!p->of_loss) look(*p);
  }
  for (const auto* b : registry.buffers) look(*b);
  if (last.weight() == nullptr) return taken;
  taken.last = last.name();
  taken.last_here = last.weight()->shape[0];
  const auto found = shapes.find(prefix + last.weight()->name);
  if (found != shapes.end() && !found->second->empty()) {
    taken.last_in_file = found->second->front();
  }
  return taken;
}

std::string in_words(const TakenWeights& taken, const fs::path& file) {
  if (taken.last_in_file && *taken.last_in_file != taken.last_here) {
    return fmt::format(
        "{}: {} of the model's {} tensors; the last layer, {}, starts anew, since it has {} "
        "outputs there and {} here",
        file.string(), taken.tensors, taken.wanted, taken.last, *taken.last_in_file,
        taken.last_here);
  }
  return fmt::format("{}: all {} tensors of the model, the last layer, {}, with its {} outputs too",
                     file.string(), taken.wanted, taken.last, taken.last_here);
}

std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name,
                             NonFinite nonfinite) {
  const FileEntry* entry = file.find(name);
  if (entry == nullptr || !is_number(entry->spec.dtype))
    (void)file.f32(name);  // says what is wrong
  std::vector<float> values = as_f32(*entry);
  if (nonfinite == NonFinite::refused) require_all_finite(file, entry->spec, values);
  return values;
}

HostState load_model(const fs::path& path, const nn::Registry& registry, Head head,
                     NonFinite nonfinite) {
  require_no_optimizer(path);
  return ModelReader(*read_saved(path), registry).read(head, nonfinite);
}

void require_finite_numbers(const fs::path& path, const FileSums& sums) {
  const SafetensorsFile file(path);
  require_sum(sums, path, file.sum());
  for (const FileEntry& entry : file.entries()) {
    if (is_float(entry.spec.dtype)) require_all_finite(file, entry.spec, as_f32(entry));
  }
}

std::string rounding_of(const fs::path& file) {
  const SafetensorsStream stream(file);
  const auto& tensors = stream.header().tensors;
  const bool wide = std::any_of(tensors.begin(), tensors.end(),
                                [](const StoredTensor& t) { return t.spec.dtype == "F64"; });
  return wide ? file.string() + ": its F64 numbers are rounded to f32" : std::string();
}

}  // namespace ringlet::train
