#include "train/files/foreign_format.h"

#include <algorithm>
#include <array>

namespace ringlet::train {

namespace {

using FirstBytes = std::string_view;

constexpr std::size_t kLengthBytes = 8;  // of a safetensors header, before its '{'

bool has(FirstBytes head, FirstBytes part) { return head.find(part) != FirstBytes::npos; }

bool is_zip(FirstBytes head) { return head.starts_with("PK\x03\x04"); }

/// torch.save() as it was before version 1.6, and any other pickle of protocol 2 or later.
bool is_pickle(FirstBytes head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

/// A protobuf message whose first field is ir_version, and whose second one is a ModelProto's.
bool is_onnx(FirstBytes head) {
  constexpr FirstBytes kNext = "\x12\x1a\x22\x28\x32\x3a\x42";  // tags of the fields 2 to 8
  constexpr char kMostVersions = 32;
  return head.size() > 2 && head[0] == 8 && head[1] > 0 && head[1] < kMostVersions &&
         kNext.find(head[2]) != FirstBytes::npos;
}

bool is_page(FirstBytes head) {
  constexpr std::size_t kShown = 64;
  std::string begin(head.substr(0, kShown));
  std::transform(begin.begin(), begin.end(), begin.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return has(begin, "<!doctype html") || has(begin, "<html");
}

struct KnownFormat {
  bool (*fits)(FirstBytes head);
  const char* is;
  const char* remedy;
};

constexpr const char* kByTorch =
    "write safetensors in Python: safetensors.torch.save_file(torch.load(FILE, "
    "weights_only=True), NEW)";

/// The first that fits counts.
constexpr std::array kKnownFormats{
    KnownFormat{[](FirstBytes head) { return is_zip(head) && has(head, "data.pkl"); },
                "PyTorch's own format, a pickle that only PyTorch reads", kByTorch},
    KnownFormat{is_pickle, "a pickle, which only Python reads", kByTorch},
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
    KnownFormat{[](FirstBytes head) { return head.starts_with("\x1f\x8b"); }, "compressed by gzip",
                "unpack it (gunzip), and name what comes out"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("version https://git-lfs"); },
                "a pointer of Git LFS", "fetch what it stands for (git lfs pull)"},
    KnownFormat{is_page, "a web page", "fetch the file itself, and not the page about it"},
    KnownFormat{[](FirstBytes head) { return head.starts_with("{\"") || head.starts_with("{\n"); },
                "JSON", "name the file of weights that it tells of"}};

}  // namespace

std::optional<ForeignFormat> recognise_foreign(std::string_view head) {
  if (head.size() > kLengthBytes && head[kLengthBytes] == '{') return {};
  const auto* kind = std::find_if(kKnownFormats.begin(), kKnownFormats.end(),
                                  [&](const KnownFormat& known) { return known.fits(head); });
  if (kind == kKnownFormats.end()) return {};
  return ForeignFormat{kind->is, kind->remedy};
}

}  // namespace ringlet::train
