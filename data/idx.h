// IDX: the file format of MNIST and Fashion-MNIST.
//
//   0 0 type ndim | ndim u32 sizes, big-endian | the elements, row-major          type 8 = u8
//
// Only u8 is read. A file may be gzipped; that is seen from its content, not from its name. The
// reader is strict, because a file that is almost right trains almost right: the magic number, the
// number of dimensions and the exact number of bytes must be met, and nothing is allocated before
// the sizes have been checked against the bytes that are there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/byte_source.h"

namespace ringlet::data {

struct IdxArray {
  std::vector<std::int64_t> sizes;   ///< one per dimension
  std::vector<std::uint8_t> values;  ///< row-major, the product of the sizes
};

/// Sees the raw (decompressed) bytes of a file in order, piece by piece, header included.
using RawBytesObserver = std::function<void(std::span<const std::uint8_t>)>;

/// Reads a u8 array of `dimensions` dimensions (3 for images, 1 for labels).
/// Throws DataError naming the file, what was expected and what was found: not there, not readable,
/// not IDX, another type, another number of dimensions, sizes beyond any use, shorter or longer
/// than the sizes say, a gzip stream that breaks off or fails its checksum.
IdxArray read_idx(const std::filesystem::path& file, int dimensions,
                  const RawBytesObserver& observer = {});

/// The same from an open source; `name` is for messages.
IdxArray read_idx(ByteSource& source, const std::string& name, int dimensions,
                  const RawBytesObserver& observer = {});

/// Whether a file that begins with `head` is taken for IDX: its magic number is one, of any type
/// and of one dimension or more.
bool looks_like_idx(std::span<const std::uint8_t> head);

/// Reads a u8 array of any number of dimensions and keeps nothing: `pieces` sees the sizes and,
/// piece by piece in order, the elements. As strict as read_idx, with the same errors.
using IdxPieces = std::function<void(const std::vector<std::int64_t>& sizes,
                                     std::span<const std::uint8_t> elements)>;
void scan_idx(ByteSource& source, const std::string& name, const IdxPieces& pieces);

}  // namespace ringlet::data
