// `.rec` files for tests, put together from their parts by the words of data/record_file.h, so that
// nothing of the product's writer is in them.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace ringlet::testing {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

inline std::string f32(float value) {
  return little_endian(std::bit_cast<std::uint32_t>(value), 4);
}

inline const std::string kMagicWord = "\x0a\x23\xd7\xce";

inline std::string record_part(std::uint32_t kind, const std::string& payload) {
  const auto length = kind << 29 | static_cast<std::uint32_t>(payload.size());
  return kMagicWord + little_endian(length, 4) + payload +
         std::string((4 - payload.size() % 4) % 4, '\0');
}

/// flag, label, id, id2, and `flag` labels where there are any.
inline std::string record_head(float label, std::uint64_t id,
                               const std::vector<float>& labels = {}) {
  std::string head =
      little_endian(labels.size(), 4) + f32(label) + little_endian(id, 8) + little_endian(0, 8);
  for (const float each : labels) head += f32(each);
  return head;
}

/// Records and their `.idx`, as they are added.
class Records {
 public:
  void add(std::uint64_t key, const std::string& record) {
    index_ += std::to_string(key) + "\t" + std::to_string(records_.size()) + "\n";
    records_ += record;
  }
  void picture(std::uint64_t key, float label, const std::string& bytes) {
    add(key, record_part(0, record_head(label, key) + bytes));
  }
  const std::string& bytes() const { return records_; }
  const std::string& index() const { return index_; }

  std::filesystem::path write(const std::filesystem::path& file, bool with_index = true) const {
    write_file(file, records_);
    std::filesystem::path beside = file;
    if (with_index) write_file(beside.replace_extension(".idx"), index_);
    return file;
  }

 private:
  std::string records_, index_;
};

}  // namespace ringlet::testing
