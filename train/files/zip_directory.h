// What lies where in a zip archive whose entries are stored as they are, as torch.save() writes it.
//
//   each entry's header, name and bytes
//   the directory: for each entry its name, size and place
//   where the directory lies; in a zip64 in a record of its own, for more than 32 bits
//
// The directory counts; an entry's own header says only where its bytes begin. A compressed or
// encrypted entry is refused by its name, so nothing can swell. No two entries share a byte.
//
// Source: APPNOTE.TXT 6.3.10 of PKWARE.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace ringlet::train {

struct ZipEntry {
  std::string name;
  std::uint64_t begin = 0;  ///< of its bytes, from the beginning of the file
  std::uint64_t bytes = 0;
};

/// In the order of their bytes. `archive` can be read anywhere and has `bytes` bytes; `file` is for
/// messages. Throws FileError naming it and what is wrong.
std::vector<ZipEntry> read_zip_directory(std::istream& archive, std::uint64_t bytes,
                                         const std::string& file);

}  // namespace ringlet::train
