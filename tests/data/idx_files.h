// IDX files made byte by byte.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace ringlet::testing {

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx_header(int type, const std::vector<std::uint32_t>& sizes) {
  std::string bytes{0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes;
}

/// A u8 array whose values are 0, 1, 2, ... modulo `modulus`.
inline std::string idx(const std::vector<std::uint32_t>& sizes, int modulus = 256) {
  std::string bytes = idx_header(8, sizes);
  std::size_t count = 1;
  for (const std::uint32_t size : sizes) count *= size;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += static_cast<char>(i % static_cast<std::size_t>(modulus));
  }
  return bytes;
}

inline std::string gzip(const std::string& raw) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(raw.size())), '\0');
  std::string in = raw;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Four small files in MNIST's naming: 20 + 10 images of 4 x 5, labels 0 .. 9.
inline void write_small_set(const std::filesystem::path& directory) {
  write_file(directory / "train-images-idx3-ubyte", idx({20, 4, 5}));
  write_file(directory / "train-labels-idx1-ubyte", idx({20}, 10));
  write_file(directory / "t10k-images-idx3-ubyte", idx({10, 4, 5}, 7));
  write_file(directory / "t10k-labels-idx1-ubyte", idx({10}, 10));
}

}  // namespace ringlet::testing
