#include "train/files/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "base/files/json_text.h"

namespace ringlet::train {
namespace {

using nlohmann::json;

struct DtypeInfo {
  std::string_view name;
  std::int64_t bytes;
};

/// In the reference's order, which sorts the tensors of a file.
constexpr std::array kDtypes{DtypeInfo{"BOOL", 1},    DtypeInfo{"U8", 1},      DtypeInfo{"I8", 1},
                             DtypeInfo{"F8_E5M2", 1}, DtypeInfo{"F8_E4M3", 1}, DtypeInfo{"I16", 2},
                             DtypeInfo{"U16", 2},     DtypeInfo{"F16", 2},     DtypeInfo{"BF16", 2},
                             DtypeInfo{"I32", 4},     DtypeInfo{"U32", 4},     DtypeInfo{"F32", 4},
                             DtypeInfo{"F64", 8},     DtypeInfo{"I64", 8},     DtypeInfo{"U64", 8}};

constexpr const char* kMetadata = "__metadata__";

/// Checks one header. Every problem is a FileError that starts with the file's name.
class HeaderParser {
 public:
  HeaderParser(const std::string& file, std::uint64_t data_bytes)
      : file_(file), data_bytes_(data_bytes) {}

  SafetensorsHeader parse(std::string_view text) {
    const json root = parse_json(text);
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
      if (name == kMetadata) {
        header.metadata = read_metadata(value);
      } else {
        header.tensors.push_back(read_tensor(name, value));
      }
    }
    check_offsets(header.tensors);
    return header;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    constexpr std::size_t kLongest = 1000;  // a name may have the header's 100 MB
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    throw FileError(file_ + ": " + on_one_line(what, kLongest) + "; fetch or save the file again");
  }

  /// The JSON library keeps the last of equal names and says nothing, so names are watched as they
  /// come by. Nothing in a header nests deeper than a shape's numbers.
  json parse_json(std::string_view text) const {
    constexpr int kMaxDepth = 4;
    if (text.empty() || text.front() != '{') fail("the header does not start with '{{'");
    // The JSON library takes a zero byte for the end of the text.
    if (text.find('\0') != std::string_view::npos)
      fail("the header is not valid JSON (a zero byte)");
    std::vector<std::set<std::string>> open_objects;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > kMaxDepth) fail("the header nests too deeply");
      if (event == json::parse_event_t::object_start) open_objects.emplace_back();
      if (event == json::parse_event_t::object_end) open_objects.pop_back();
      if (event == json::parse_event_t::key) {
        const auto& name = parsed.get_ref<const std::string&>();
        if (!open_objects.back().insert(name).second) {
          fail("the header has the name '{}' twice", name);
        }
      }
      return true;
    };
    try {
      return json::parse(text.begin(), text.end(), watch);
    } catch (const json::exception& error) {
      fail("the header is not valid JSON ({})", error.what());
    }
  }

  std::map<std::string, std::string> read_metadata(const json& value) const {
    if (!value.is_object()) fail("{} is not an object", kMetadata);
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("{}: the value of '{}' is not a string", kMetadata, key);
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  StoredTensor read_tensor(const std::string& name, const json& value) const {
    constexpr std::array kFields{"dtype", "shape", "data_offsets"};
    if (!value.is_object()) fail("tensor '{}' is not described by an object", name);
    for (const char* field : kFields) {
      if (!value.contains(field)) fail("tensor '{}' has no {}", name, field);
    }
    if (value.size() != kFields.size()) fail("tensor '{}' has fields that are not known", name);

    StoredTensor tensor;
    tensor.spec = {name, read_dtype(name, value["dtype"]), {}};
    for (const std::uint64_t extent : read_numbers(name, "shape", value["shape"])) {
      tensor.spec.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const auto offsets = read_numbers(name, "data_offsets", value["data_offsets"]);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      fail("tensor '{}': data_offsets {} are not a begin and an end", name,
           fmt::join(offsets, ", "));
    }
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    check_bytes(tensor);
    return tensor;
  }

  std::string read_dtype(const std::string& name, const json& value) const {
    if (!value.is_string()) fail("tensor '{}': the dtype is not a string", name);
    auto dtype = value.get<std::string>();
    if (safetensors_dtype_rank(dtype) < 0)
      fail("tensor '{}': dtype '{}' is not known", name, dtype);
    return dtype;
  }

  std::vector<std::uint64_t> read_numbers(const std::string& name, const char* field,
                                          const json& value) const {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_array()) fail("tensor '{}': {} is not a list", name, field);
    std::vector<std::uint64_t> numbers;
    for (const json& number : value) {
      if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMax) {
        fail("tensor '{}': {} holds {}, which is not a size", name, field, number.dump());
      }
      numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
  }

  /// The shape's bytes and the offsets' must agree.
  void check_bytes(const StoredTensor& tensor) const {
    auto bytes = static_cast<std::uint64_t>(safetensors_dtype_bytes(tensor.spec.dtype));
    for (const std::int64_t extent : tensor.spec.shape) {
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
        fail("tensor '{}': the shape {} is too large", tensor.spec.name,
             describe(tensor.spec.shape));
      }
    }
    if (bytes == tensor.end - tensor.begin) return;
    fail("tensor '{}': {} takes {} bytes, but its data_offsets hold {}", tensor.spec.name,
         describe(tensor.spec), bytes, tensor.end - tensor.begin);
  }

  /// Sorts; then each tensor begins where the one before ends, and the last ends with the file.
  void check_offsets(std::vector<StoredTensor>& tensors) const {
    std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
      return std::tie(a.begin, a.end, a.spec.name) < std::tie(b.begin, b.end, b.spec.name);
    });
    std::uint64_t end = 0;
    for (const StoredTensor& tensor : tensors) {
      if (tensor.begin > end) {
        fail("there is a hole of {} bytes before tensor '{}'", tensor.begin - end,
             tensor.spec.name);
      }
      if (tensor.begin < end) fail("tensor '{}' overlaps the one before it", tensor.spec.name);
      end = tensor.end;
    }
    if (end == data_bytes_) return;
    fail("{}: the header describes {} bytes of tensors, the file holds {}",
         end > data_bytes_ ? "truncated" : "too long", end, data_bytes_);
  }

  const std::string& file_;
  std::uint64_t data_bytes_;
};

}  // namespace

int safetensors_dtype_rank(std::string_view dtype) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].name == dtype) return static_cast<int>(i);
  }
  return -1;
}

std::int64_t safetensors_dtype_bytes(std::string_view dtype) {
  const int rank = safetensors_dtype_rank(dtype);
  return rank < 0 ? 0 : kDtypes[static_cast<std::size_t>(rank)].bytes;
}

SafetensorsHeader parse_safetensors_header(const std::string& file, std::string_view text,
                                           std::uint64_t data_bytes) {
  return HeaderParser(file, data_bytes).parse(text);
}

std::string format_safetensors_header(const std::string& file, const SafetensorsHeader& header) {
  constexpr std::size_t kPadding = 8;
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root[kMetadata] = header.metadata;
  for (const StoredTensor& tensor : header.tensors) {
    root[tensor.spec.name] = {{"dtype", tensor.spec.dtype},
                              {"shape", tensor.spec.shape},
                              {"data_offsets", {tensor.begin, tensor.end}}};
  }
  try {
    std::string text = root.dump();
    text.resize((text.size() + kPadding - 1) / kPadding * kPadding, ' ');
    return text;
  } catch (const json::exception& error) {
    throw FileError("cannot write " + file + ": a name or metadata is not UTF-8 (" + error.what() +
                    ")");
  }
}

std::string describe(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe(const TensorSpec& spec) { return spec.dtype + " " + describe(spec.shape); }

}  // namespace ringlet::train
