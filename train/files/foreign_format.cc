#include "train/files/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/files/torch_pickle.h"

namespace ringlet::train {

namespace {

using FirstBytes = std::string_view;

constexpr std::size_t kLengthBytes = 8;  // of a safetensors header, before its '{'

bool has(FirstBytes head, FirstBytes part) { return head.find(part) != FirstBytes::npos; }

bool is_zip(FirstBytes head) { return head.starts_with("PK\x03\x04"); }

/// torch.save() begins with its program. A model of torch.jit.save() has code besides, and may have
/// a weight that fills the whole head first.
bool is_torch_script(FirstBytes head) {
  const FirstBytes before = head.substr(0, std::min(head.find("/data.pkl"), head.size()));
  return is_zip(head) && (has(before, "/data/") || has(head, "/code/__torch__"));
}

/// A pickle of protocol 2 or later.
bool is_pickle(FirstBytes head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

/// A protobuf message whose first field is ir_version, and whose second one is a ModelProto's.
/// TensorFlow's SavedModel begins in the same way, with version 1, which ONNX left in 2017.
bool is_onnx(FirstBytes head) {
  constexpr FirstBytes kNext = "\x12\x1a\x22\x28\x32\x3a\x42";  // tags of the fields 2 to 8
  constexpr char kMostVersions = 32;
  return head.size() > 2 && head[0] == 8 && head[1] > 1 && head[1] < kMostVersions &&
         kNext.find(head[2]) != FirstBytes::npos;
}

bool is_page(FirstBytes head) {
  constexpr std::size_t kShown = 64;
  std::string begin(head.substr(0, kShown));
  std::transform(begin.begin(), begin.end(), begin.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return has(begin, "<!doctype html") || has(begin, "<html");
}

bool is_tar(FirstBytes head) {
  constexpr std::size_t kMagic = 257;
  return head.size() > kMagic && head.substr(kMagic).starts_with("ustar");
}

bool is_compressed(FirstBytes head) {
  return head.starts_with("\x1f\x8b") || head.starts_with("BZh") ||
         head.starts_with("\xfd\x37zXZ") || head.starts_with("\x28\xb5\x2f\xfd");
}

bool is_text(FirstBytes head) {
  constexpr std::size_t kShown = 64;
  const FirstBytes begin = head.substr(0, kShown);
  return head.size() > kLengthBytes && std::all_of(begin.begin(), begin.end(), [](char c) {
           return (' ' <= c && c <= '~') || ('\t' <= c && c <= '\r');
         });
}

struct KnownFormat {
  bool (*fits)(FirstBytes head);
  const char* is;
  const char* remedy;
};

constexpr KnownFormat kTorchScript{
    is_torch_script, "a TorchScript model, a program that only PyTorch reads",
    "write safetensors in Python: "
    "safetensors.torch.save_file(torch.jit.load(FILE).state_dict(), NEW)"};

/// The first that fits counts.
constexpr std::array kKnownFormats{
    kTorchScript,
    KnownFormat{is_pickle, "a pickle, a program that only Python reads",
                "where you trust it, write its arrays in Python: "
                "safetensors.numpy.save_file({NAME: ARRAY, ...}, NEW)"},
    KnownFormat{
        [](FirstBytes head) { return is_zip(head) && has(head, ".npy"); }, "NumPy's npz",
        "write safetensors in Python: safetensors.numpy.save_file(dict(numpy.load(FILE)), NEW)"},
    KnownFormat{
        [](FirstBytes head) { return head.starts_with("\x93NUMPY"); }, "a single array of NumPy's",
        "write safetensors in Python: safetensors.numpy.save_file({NAME: numpy.load(FILE), ...}, "
        "NEW)"},
    KnownFormat{is_onnx, "an ONNX model",
                "write safetensors in Python: safetensors.numpy.save_file({t.name: "
                "onnx.numpy_helper.to_array(t) for t in onnx.load(FILE).graph.initializer}, NEW)"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("\x89HDF\r\n\x1a\n"); },
                "HDF5, as Keras writes it",
                "write its arrays in Python: safetensors.numpy.save_file({NAME: ARRAY, ...}, NEW)"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("GGUF"); }, "GGUF",
                "fetch the same model's safetensors"},
    KnownFormat{is_zip, "a zip archive", "unpack it, and name the file of weights in it"},
    KnownFormat{is_tar, "a tar archive", "unpack it, and name the file of weights in it"},
    KnownFormat{is_compressed, "compressed", "unpack it, and name what comes out"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("version https://git-lfs"); },
                "a pointer of Git LFS", "fetch what it stands for (git lfs pull)"},
    KnownFormat{is_page, "a web page", "fetch the file itself, and not the page about it"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("{\"") || head.starts_with("{\n"); },
                "JSON", "name the file of weights that it tells of"},
    KnownFormat{is_text, "text", "name a file of weights"}};

}  // namespace

std::string first_bytes(std::string_view head) {
  constexpr std::size_t kShown = 8;
  std::string shown;
  for (const char c : head.substr(0, kShown)) {
    shown += fmt::format("{}{:02x}", shown.empty() ? "" : " ", static_cast<unsigned char>(c));
  }
  return shown;
}

bool is_torch_archive(std::string_view head) {
  const bool is_archive = is_zip(head) && has(head, "/data.pkl") && !is_torch_script(head);
  return is_archive || begins_old_torch(head);
}

ForeignFormat torch_script_format() { return {kTorchScript.is, kTorchScript.remedy}; }

std::optional<ForeignFormat> recognise_foreign(std::string_view head) {
  if (head.size() > kLengthBytes && head[kLengthBytes] == '{') return {};
  if (is_torch_archive(head)) return {};
  const auto* kind = std::find_if(kKnownFormats.begin(), kKnownFormats.end(),
                                  [&](const KnownFormat& known) { return known.fits(head); });
  if (kind == kKnownFormats.end()) return {};
  return ForeignFormat{kind->is, kind->remedy};
}

}  // namespace ringlet::train
