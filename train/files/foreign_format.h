// Weights that lie in another format than safetensors, by the first bytes of the file: a name says
// little (".bin" may be anything).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ringlet::train {

/// As many of a file's first bytes are looked at.
inline constexpr std::size_t kForeignHead = 4096;

struct ForeignFormat {
  std::string is;      ///< "an ONNX model"
  std::string remedy;  ///< how its weights become safetensors
};

/// Those that tell formats apart: "7f 45 4c 46 02 01 01 00".
std::string first_bytes(std::string_view head);

/// Whether a file that begins so is one of torch.save(), which torch_archive.h reads.
bool is_torch_archive(std::string_view head);

/// A model of torch.jit.save(), which is found out where the archive is opened.
ForeignFormat torch_script_format();

/// Nothing for a safetensors file, one of torch.save(), and for what is not known.
std::optional<ForeignFormat> recognise_foreign(std::string_view head);

}  // namespace ringlet::train
