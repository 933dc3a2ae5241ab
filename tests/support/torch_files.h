// Files of torch.save() for tests, put together from their parts, so that nothing of the product is
// in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/pickles.h"

namespace ringlet::testing {

struct ZippedEntry {
  std::string name;
  std::string bytes;
  std::string extra = std::string();  ///< in the entry's own header, as PyTorch pads with it
};

/// An archive that compresses nothing. `wide`: its directory is a zip64.
inline std::string zip_of(const std::vector<ZippedEntry>& entries, bool wide = false) {
  std::string zip, directory;
  for (const ZippedEntry& entry : entries) {
    const std::uint64_t at = zip.size();
    zip += std::string("PK\x03\x04") + std::string(22, '\0') + little_endian(entry.name.size(), 2) +
           little_endian(entry.extra.size(), 2);
    zip += entry.name + entry.extra + entry.bytes;
    std::string wide_part;
    if (wide) {
      wide_part = little_endian(1, 2) + little_endian(24, 2) +
                  little_endian(entry.bytes.size(), 8) + little_endian(entry.bytes.size(), 8) +
                  little_endian(at, 8);
    }
    const std::string all_ones(4, '\xff');
    const std::string size = wide ? all_ones : little_endian(entry.bytes.size(), 4);
    directory += "PK\x01\x02";
    directory.append(16, '\0').append(size).append(size);
    directory += little_endian(entry.name.size(), 2);
    directory += little_endian(wide_part.size(), 2);
    directory.append(10, '\0').append(wide ? all_ones : little_endian(at, 4));
    directory += entry.name + wide_part;
  }
  const std::uint64_t at = zip.size();
  zip += directory;
  if (wide) {
    const std::uint64_t record = zip.size();
    zip += std::string("PK\x06\x06") + little_endian(44, 8) + std::string(12, '\0') +
           little_endian(entries.size(), 8) + little_endian(entries.size(), 8) +
           little_endian(directory.size(), 8) + little_endian(at, 8);
    zip += std::string("PK\x06\x07") + little_endian(0, 4) + little_endian(record, 8) +
           little_endian(1, 4);
  }
  return zip + "PK\x05\x06" + std::string(4, '\0') + little_endian(entries.size(), 2) +
         little_endian(wide ? 0xFFFF : entries.size(), 2) +
         (wide ? std::string(8, '\xff')
               : little_endian(directory.size(), 4) + little_endian(at, 4)) +
         little_endian(0, 2);
}

inline std::string pickled_word(const std::string& text) {
  return "X" + little_endian(text.size(), 4) + text;
}

inline std::string pickled_number(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}

inline std::string pickled_tuple(const std::vector<std::string>& items) {
  std::string pickle = "(";
  for (const std::string& item : items) pickle += item;
  return pickle + "t";
}

inline std::string pickled_numbers(const std::vector<std::int64_t>& values) {
  std::vector<std::string> items;
  for (const std::int64_t value : values) items.push_back(pickled_number(value));
  return pickled_tuple(items);
}

inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string pickle = "}(";
  for (const auto& [key, value] : items) pickle += pickled_word(key) + value;
  return pickle + "u";
}

/// A view of storage `key`, which has `stored` elements of `type` ("FloatStorage").
struct PickledView {
  std::string key = "0";
  std::string type = "FloatStorage";
  std::int64_t stored = 0;
  std::int64_t first = 0;
  std::vector<std::int64_t> shape{}, strides{};
  std::string part_of{};  ///< pickled, behind the storage's elements; before version 1.6
};

inline std::string pickled_tensor(const PickledView& view) {
  const std::string storage =
      pickled_tuple({pickled_word("storage"), "ctorch\n" + view.type + "\n", pickled_word(view.key),
                     pickled_word("cpu"), pickled_number(view.stored), view.part_of}) +
      "Q";
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         pickled_tuple({storage, pickled_number(view.first), pickled_numbers(view.shape),
                        pickled_numbers(view.strides), "\x89", "ccollections\nOrderedDict\n)R"}) +
         "R";
}

/// `value` in protocol 2.
inline std::string pickle_of(const std::string& value) { return "\x80\x02" + value + "."; }

/// An archive as PyTorch lays it out. `storages`: the bytes of data/0, data/1 and so on.
inline std::vector<ZippedEntry> torch_entries(const std::string& value,
                                              const std::vector<std::string>& storages) {
  std::vector<ZippedEntry> entries{{"w/data.pkl", pickle_of(value), "FB\x03" + std::string(4, 'Z')},
                                   {"w/byteorder", "little"}};
  for (std::size_t i = 0; i < storages.size(); ++i) {
    entries.push_back({"w/data/" + std::to_string(i), storages[i]});
  }
  entries.push_back({"w/version", "3\n"});
  return entries;
}

inline std::string torch_file(const std::string& value, const std::vector<std::string>& storages) {
  return zip_of(torch_entries(value, storages));
}

/// What is different in a file of before version 1.6.
struct OldTorchChanges {
  std::string little_endian = "\x88";  ///< True
  std::vector<std::string> keys{};     ///< instead of "0", "1" and so on
  std::uint64_t more_elements = 0;     ///< that each storage claims
};

/// The same as it was before version 1.6. `storages`: the bytes of "0", "1" and so on, of four
/// bytes an element.
inline std::string old_torch_file(const std::string& value,
                                  const std::vector<std::string>& storages,
                                  const OldTorchChanges& changes = {}) {
  std::string keys = "](", data;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    keys += pickled_word(changes.keys.empty() ? std::to_string(i) : changes.keys.at(i));
    data +=
        little_endian(storages[i].size() / sizeof(float) + changes.more_elements, 8) + storages[i];
  }
  return pickle_of("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pickle_of("M\xe9\x03") +
         pickle_of(pickled_dict(
             {{"protocol_version", "M\xe9\x03"}, {"little_endian", changes.little_endian}})) +
         pickle_of(value) + pickle_of(keys + "e") + data;
}

}  // namespace ringlet::testing
