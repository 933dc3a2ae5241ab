// The JSON header of a safetensors file: text <-> a list of tensors with their offsets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "train/files/safetensors.h"

namespace ringlet::train {

/// The reference's limit on the header's length.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct StoredTensor {
  TensorSpec spec;
  std::uint64_t begin = 0;  ///< bytes, from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  ///< sorted by offset
  bool is_torch = false;  ///< of a file of PyTorch's own (torch_archive.h), which has no such text
  std::string under{};    ///< of such a file: the key under which its tensors lie
};

/// Position of a dtype in the reference's order, narrowest first; -1 for one that it does not know.
int safetensors_dtype_rank(std::string_view dtype);

/// Parses and checks all that can be wrong in a header whose tensors shall fill `data_bytes`.
/// Throws FileError that starts with `file`.
SafetensorsHeader parse_safetensors_header(const std::string& file, std::string_view text,
                                           std::uint64_t data_bytes);

/// The header's text, padded with spaces to a multiple of 8. Throws FileError (a name that is not
/// UTF-8).
std::string format_safetensors_header(const std::string& file, const SafetensorsHeader& header);

/// "F32 [20, 1, 3, 3]"
std::string describe(const TensorSpec& spec);
std::string describe(const std::vector<std::int64_t>& shape);

}  // namespace ringlet::train
