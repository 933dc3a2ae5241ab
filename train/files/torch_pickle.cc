#include "train/files/torch_pickle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/files/file_error.h"
#include "base/one_line.h"
#include "base/pickle_machine.h"
#include "train/files/safetensors_header.h"

namespace ringlet::train {

namespace {

constexpr std::size_t kShownOfName = 200;  // letters of a name
constexpr const char* kWriteAnew =
    "write the file anew in Python: torch.save(torch.load(FILE, weights_only=True), NEW)";

using Kind = PickleMachine::Kind;
using Value = PickleMachine::Value;
using Ref = PickleMachine::Ref;

struct ElementType {
  const char* storage;
  const char* dtype;
  const char* in_safetensors;
};

constexpr std::array kTypes{ElementType{"FloatStorage", "float32", "F32"},
                            ElementType{"DoubleStorage", "float64", "F64"},
                            ElementType{"HalfStorage", "float16", "F16"},
                            ElementType{"BFloat16Storage", "bfloat16", "BF16"},
                            ElementType{"LongStorage", "int64", "I64"},
                            ElementType{"IntStorage", "int32", "I32"},
                            ElementType{"ShortStorage", "int16", "I16"},
                            ElementType{"CharStorage", "int8", "I8"},
                            ElementType{"ByteStorage", "uint8", "U8"},
                            ElementType{"BoolStorage", "bool", "BOOL"},
                            ElementType{"", "uint16", "U16"},
                            ElementType{"", "uint32", "U32"},
                            ElementType{"", "uint64", "U64"},
                            ElementType{"", "float8_e4m3fn", "F8_E4M3"},
                            ElementType{"", "float8_e5m2", "F8_E5M2"}};

/// What a name stands for. From kFirstType on: one of kTypes.
enum TorchName : std::uint8_t {
  kOrderedDict,
  kTensor,
  kTensorWithType,
  kParameter,
  kFromType,
  kUntyped,
  kUnknown,
  kFirstType
};

/// What an object is. Its number is its place in the list of these.
enum TorchObject : std::uint8_t { kOpaque, kStorage, kTensorObject };

/// Modules of which any name is an object of which nothing is known.
constexpr std::array<std::string_view, 13> kHarmless{
    "argparse", "collections", "datetime",          "enum", "lightning", "numpy", "omegaconf",
    "pathlib",  "torch",       "pytorch_lightning", "timm", "types",     "uuid"};

constexpr std::array<std::string_view, 14> kOfPython{
    "bool", "bytearray", "bytes",  "complex", "dict",  "float", "frozenset",
    "int",  "list",      "object", "set",     "slice", "str",   "tuple"};

/// "numpy" and "numpy.core", and not "numpyx".
bool lies_in(std::string_view module, std::string_view outer) {
  return module.starts_with(outer) &&
         (module.size() == outer.size() || module[outer.size()] == '.');
}

std::optional<std::uint8_t> name_in_torch(std::string_view module, std::string_view name) {
  const auto is = [&](std::string_view wanted, std::string_view of_it) {
    return module == wanted && name == of_it;
  };
  if (is("torch._utils", "_rebuild_tensor") || is("torch._utils", "_rebuild_tensor_v2")) {
    return kTensor;
  }
  if (is("torch._utils", "_rebuild_tensor_v3")) return kTensorWithType;
  if (is("torch._utils", "_rebuild_parameter")) return kParameter;
  if (is("torch._utils", "_rebuild_parameter_with_state")) return kParameter;
  if (is("torch._tensor", "_rebuild_from_type_v2")) return kFromType;
  if (is("torch.storage", "UntypedStorage")) return kUntyped;
  if (module == "torch") {
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      if (name == kTypes[i].storage || name == kTypes[i].dtype) {
        return static_cast<std::uint8_t>(kFirstType + i);
      }
    }
  }
  // A module pickled whole is a program with its weights.
  if (lies_in(module, "torch.nn") && module != "torch.nn.parameter") return {};
  return kUnknown;
}

std::optional<std::uint8_t> name_of(std::string_view module, std::string_view name) {
  if (module == "collections" && name == "OrderedDict") return kOrderedDict;
  if (lies_in(module, "torch")) return name_in_torch(module, name);
  if (module == "_codecs" && name == "encode") return kUnknown;
  if (module == "copyreg" || module == "copy_reg") {
    return name == "_reconstructor" ? std::optional<std::uint8_t>(kUnknown) : std::nullopt;
  }
  if (module == "builtins" || module == "__builtin__") {
    const bool is_type = std::ranges::find(kOfPython, name) != kOfPython.end();
    return is_type ? std::optional<std::uint8_t>(kUnknown) : std::nullopt;
  }
  const bool is_harmless = std::ranges::any_of(
      kHarmless, [&](std::string_view outer) { return lies_in(module, outer); });
  return is_harmless ? std::optional<std::uint8_t>(kUnknown) : std::nullopt;
}

struct TorchStorage {
  std::string_view key;
  std::optional<std::size_t> type{};  // of kTypes; nothing: bytes
  std::int64_t elements = 0;
};

struct TorchView {
  std::size_t storage = 0;
  std::size_t type = 0;  // of kTypes
  std::int64_t first = 0;
  std::vector<std::int64_t> shape, strides;
};

class TorchMachine : public PickleMachine {
 public:
  TorchMachine(ByteView pickle, const std::string& file, bool more_behind = false)
      : PickleMachine(pickle, {.things = "weights",
                               .instead = "; take weights that were saved as a state_dict() alone",
                               .most_levels = 100,
                               .objects = true,
                               .more_behind = more_behind}),
        file_(file) {}

  void throw_error(const std::string& what) const override { throw FileError(file_ + ": " + what); }

  /// Null: it is no tensor.
  const TorchView* tensor(Ref ref) const {
    const Value& value = at(ref);
    const bool is_tensor = value.kind == Kind::object && value.type == kTensorObject;
    return is_tensor ? &views_[static_cast<std::size_t>(value.number)] : nullptr;
  }
  const TorchStorage& storage(const TorchView& view) const { return storages_[view.storage]; }
  const std::vector<TorchStorage>& storages() const { return storages_; }

 private:
  std::optional<std::uint8_t> type_of(std::string_view module, std::string_view name) override {
    return name_of(module, name);
  }

  Ref opaque() { return make({.kind = Kind::object, .type = kOpaque}); }

  Ref call(std::uint8_t function, const Value& arguments) override {
    switch (function) {
      case kOrderedDict:
        return ordered_dict(arguments);
      case kTensor:
        return rebuild(arguments, {});
      case kTensorWithType: {
        constexpr std::size_t kType = 6;
        const std::uint8_t type = argument(arguments, kType, Kind::name).type;
        if (type < kFirstType) return opaque();
        return rebuild(arguments, type - kFirstType);
      }
      case kParameter:
        if (arguments.items.empty()) damaged();
        return arguments.items[0];
      case kFromType:
        return call(argument(arguments, 0, Kind::name).type, argument(arguments, 2, Kind::tuple));
      default:
        return opaque();
    }
  }

  /// Python 2 gives a list of pairs.
  Ref ordered_dict(const Value& arguments) {
    Value dict{.kind = Kind::dict, .levels = 1};
    if (!arguments.items.empty()) {
      const Value& pairs = argument(arguments, 0, Kind::list);
      dict.levels = pairs.levels;
      count_items(2 * pairs.items.size());
      for (const Ref pair : pairs.items) {
        if (at(pair).items.size() != 2) damaged();
        dict.items.insert(dict.items.end(), at(pair).items.begin(), at(pair).items.end());
      }
    }
    return make(std::move(dict));
  }

  void build(Value& built, const Value&) override {
    if (built.kind != Kind::object && built.kind != Kind::dict) damaged();
  }

  /// ("storage", type, key, where it lay, elements)
  Ref outside(const Value& identifier) override {
    if (identifier.kind != Kind::tuple || word(identifier, 0) != "storage") damaged();
    const std::uint8_t type = argument(identifier, 1, Kind::name).type;
    if (type != kUntyped && type < kFirstType) return opaque();
    TorchStorage storage{.key = word(identifier, 2),
                         .elements = argument(identifier, 4, Kind::integer).number};
    if (type != kUntyped) storage.type = type - kFirstType;
    constexpr std::size_t kPartOf = 5;
    if (identifier.items.size() > kPartOf && at(identifier.items[kPartOf]).kind != Kind::none) {
      fail("a storage is a part of another one, as early versions of PyTorch had it; " +
           std::string(kWriteAnew));
    }
    storages_.push_back(storage);
    return make({.kind = Kind::object,
                 .type = kStorage,
                 .number = static_cast<std::int64_t>(storages_.size() - 1)});
  }

  Ref rebuild(const Value& arguments, std::optional<std::size_t> type) {
    const Value& storage = argument(arguments, 0, Kind::object);
    if (storage.type != kStorage) return opaque();
    TorchView view{.storage = static_cast<std::size_t>(storage.number),
                   .first = argument(arguments, 1, Kind::integer).number,
                   .shape = sizes(argument(arguments, 2, Kind::tuple)),
                   .strides = sizes(argument(arguments, 3, Kind::tuple))};
    if (!type) type = storages_[view.storage].type;
    if (!type || view.first < 0 || view.strides.size() != view.shape.size()) damaged();
    view.type = *type;
    views_.push_back(std::move(view));
    return make({.kind = Kind::object,
                 .type = kTensorObject,
                 .number = static_cast<std::int64_t>(views_.size() - 1)});
  }

  std::vector<std::int64_t> sizes(const Value& tuple) const {
    constexpr std::size_t kMost = 64;
    if (tuple.items.size() > kMost) damaged();
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < tuple.items.size(); ++i) {
      all.push_back(argument(tuple, i, Kind::integer).number);
      if (all.back() < 0) damaged();
    }
    return all;
  }

  const std::string& file_;
  std::vector<TorchStorage> storages_;
  std::vector<TorchView> views_;
};

/// What a dict's tensors are called, and whether all of each is there.
class WeightsFinder {
 public:
  WeightsFinder(const TorchMachine& machine, const std::map<std::string, std::uint64_t>& storages)
      : machine_(machine), storages_(storages) {}

  TorchWeights find(Ref whole) {
    if (machine_.at(whole).kind != Kind::dict) {
      machine_.fail(
          "the pickle holds no dict of tensors; save one in Python: torch.save(model.state_dict(), "
          "FILE)");
    }
    const std::optional<Ref> dict = find_in(whole, 0);
    if (!dict) {
      machine_.fail(fmt::format(
          "the pickle holds no weights where they usually are, but {}; save them in Python: "
          "torch.save(model.state_dict(), FILE)",
          keys_of(machine_.at(whole))));
    }
    for_each(machine_.at(*dict), [&](std::string_view key, Ref value) {
      if (const TorchView* view = machine_.tensor(value)) add(std::string(key), *view);
    });
    return std::move(weights_);
  }

 private:
  template <class Function>
  void for_each(const Value& dict, Function function) const {
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Value& key = machine_.at(dict.items[i]);
      if (key.kind != Kind::text && key.kind != Kind::bytes) continue;
      function(PickleMachine::as_text(key.bytes), dict.items[i + 1]);
    }
  }

  /// The dict with tensors under a usual key, else the one itself.
  std::optional<Ref> find_in(Ref dict, int level) {
    constexpr int kMostLevels = 2;
    constexpr std::array<std::string_view, 7> kUsual{
        "state_dict", "model_state_dict", "model", "net", "network", "module", "checkpoint"};
    if (machine_.at(dict).kind != Kind::dict || level > kMostLevels) return {};
    for (const std::string_view usual : kUsual) {
      std::optional<Ref> there;
      for_each(machine_.at(dict), [&](std::string_view key, Ref value) {
        if (key == usual) there = value;
      });
      if (!there) continue;
      const std::optional<Ref> found = find_in(*there, level + 1);
      if (!found) continue;
      weights_.under = std::string(usual) + (weights_.under.empty() ? "" : ".") + weights_.under;
      return found;
    }
    bool has_tensors = false;
    for_each(machine_.at(dict), [&](std::string_view, Ref value) {
      has_tensors = has_tensors || machine_.tensor(value) != nullptr;
    });
    return has_tensors ? std::optional(dict) : std::nullopt;
  }

  std::string keys_of(const Value& dict) const {
    std::vector<std::string> keys;
    for_each(dict,
             [&](std::string_view key, Ref) { keys.emplace_back(key.substr(0, kShownOfName)); });
    if (keys.empty()) return "nothing";
    return on_one_line(fmt::format("'{}'", fmt::join(keys, "', '")), kShownOfName);
  }

  void add(std::string name, const TorchView& view) {
    constexpr std::size_t kLongest = 1000;
    if (name.size() > kLongest || name != on_one_line(name)) {
      machine_.fail("a tensor's name is no plain text ('" + on_one_line(name, kShownOfName) +
                    "'); fetch or save the file again");
    }
    if (!names_.insert(name).second) fail(name, "is there twice");
    const TorchStorage& storage = machine_.storage(view);
    TorchTensor tensor{.spec = {name, kTypes[view.type].in_safetensors, view.shape},
                       .storage = std::string(storage.key),
                       .first = view.first,
                       .strides = view.strides};
    require_inside(tensor, elements_of(name, storage, view.type));
    weights_.tensors.push_back(std::move(tensor));
  }

  /// Of its storage, counted in the tensor's type.
  std::int64_t elements_of(const std::string& name, const TorchStorage& storage,
                           std::size_t type) const {
    const auto found = storages_.find(std::string(storage.key));
    if (found == storages_.end()) {
      fail(name, "has its numbers in data/" + on_one_line(storage.key, kShownOfName) +
                     ", which is not there");
    }
    const auto width_of = [](std::size_t i) {
      return static_cast<std::uint64_t>(safetensors_dtype_bytes(kTypes[i].in_safetensors));
    };
    const std::uint64_t width = storage.type ? width_of(*storage.type) : 1;
    if (storage.elements < 0 || found->second % width != 0 ||
        found->second / width != static_cast<std::uint64_t>(storage.elements)) {
      fail(name, fmt::format("has its numbers in data/{}, which has {} bytes, and {} times {} are "
                             "claimed",
                             found->first, found->second, storage.elements, width));
    }
    return static_cast<std::int64_t>(found->second / width_of(type));
  }

  void require_inside(const TorchTensor& tensor, std::int64_t stored) const {
    if (std::ranges::find(tensor.spec.shape, 0) != tensor.spec.shape.end()) return;
    std::int64_t elements = 1, last = tensor.first;
    bool fits = true;
    for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
      const std::int64_t extent = tensor.spec.shape[i];
      std::int64_t reach = 0;
      fits = fits && !__builtin_mul_overflow(elements, extent, &elements) &&
             !__builtin_mul_overflow(extent - 1, tensor.strides[i], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
    }
    if (fits && last < stored && elements <= stored) return;
    fail(tensor.spec.name,
         fmt::format("is {}, from element {} in steps of {}, and its storage has "
                     "{} elements",
                     describe(tensor.spec), tensor.first, describe(tensor.strides), stored));
  }

  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    machine_.fail("tensor '" + tensor + "' " + what + "; fetch or save the file again");
  }

  const TorchMachine& machine_;
  const std::map<std::string, std::uint64_t>& storages_;
  std::set<std::string> names_;
  TorchWeights weights_;
};

std::uint64_t width_of(std::size_t type) {
  return static_cast<std::uint64_t>(safetensors_dtype_bytes(kTypes[type].in_safetensors));
}

/// The pickles at the head of a file of before version 1.6, one after the other.
class OldTorchPickles {
 public:
  OldTorchPickles(std::span<const std::uint8_t> head, const std::string& file)
      : head_(head), file_(file) {}

  OldTorchFile read() {
    (void)next();  // the magic number
    (void)next();  // the protocol
    require_little_endian();
    const Ran weights = next();
    OldTorchFile file;
    file.storages = find_storages(*weights.machine);
    file.begin = at_;
    std::map<std::string, std::uint64_t> sizes;
    for (const OldTorchStorage& storage : file.storages) sizes[storage.key] = storage.bytes;
    file.weights = WeightsFinder(*weights.machine, sizes).find(weights.left);
    return file;
  }

 private:
  struct Ran {
    std::unique_ptr<TorchMachine> machine;
    Ref left;
  };

  /// Runs the next one.
  Ran next() {
    auto machine = std::make_unique<TorchMachine>(head_.subspan(at_), file_, true);
    const Ref left = machine->run();
    at_ += machine->size();
    return {std::move(machine), left};
  }

  void require_little_endian() {
    const auto [machine, left] = next();
    const Value& about = machine->at(left);
    for (std::size_t i = 0; about.kind == Kind::dict && i + 1 < about.items.size(); i += 2) {
      const Value &key = machine->at(about.items[i]), &value = machine->at(about.items[i + 1]);
      if (PickleMachine::as_text(key.bytes) != "little_endian" || value.number != 0) continue;
      machine->fail(
          "its numbers are not little-endian; save the weights again on a machine "
          "that is");
    }
  }

  /// In the order of their keys, which are the next pickle.
  std::vector<OldTorchStorage> find_storages(const TorchMachine& weights) {
    std::map<std::string_view, const TorchStorage*> known;
    for (const TorchStorage& storage : weights.storages()) known[storage.key] = &storage;
    const auto [machine, left] = next();
    const Value& keys = machine->at(left);
    std::vector<OldTorchStorage> storages;
    for (const Ref ref : keys.items) {
      const auto found = known.find(PickleMachine::as_text(machine->at(ref).bytes));
      constexpr std::int64_t kMost = std::int64_t{1} << 48;
      const bool is_right = keys.kind == Kind::list && found != known.end() && found->second &&
                            found->second->type && found->second->elements >= 0 &&
                            found->second->elements < kMost;
      if (!is_right) {
        machine->fail(
            "the list of its storages is not that of its tensors; fetch or save the "
            "file again");
      }
      const TorchStorage& storage = *found->second;
      const auto elements = static_cast<std::uint64_t>(storage.elements);
      storages.push_back({std::string(storage.key), elements, elements * width_of(*storage.type)});
      found->second = nullptr;  // a key that is there twice
    }
    return storages;
  }

  std::span<const std::uint8_t> head_;
  const std::string& file_;
  std::uint64_t at_ = 0;
};

}  // namespace

bool begins_old_torch(std::string_view head) {
  return head.starts_with("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
}

OldTorchFile read_old_torch(std::span<const std::uint8_t> head, const std::string& file) {
  return OldTorchPickles(head, file).read();
}

TorchWeights read_torch_pickle(std::span<const std::uint8_t> pickle,
                               const std::map<std::string, std::uint64_t>& storages,
                               const std::string& file) {
  TorchMachine machine(pickle, file);
  const Ref whole = machine.run();
  return WeightsFinder(machine, storages).find(whole);
}

}  // namespace ringlet::train
