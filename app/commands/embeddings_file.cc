#include "app/commands/embeddings_file.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "base/one_line.h"

namespace ringlet::app {

namespace {

static_assert(std::endian::native == std::endian::little, "'<f4' is little-endian");

/// The beginning of NumPy's file of an array [rows, columns] of f32. Source: NumPy's format 1.0.
std::string npy_header(std::int64_t rows, std::int64_t columns) {
  constexpr std::size_t kBefore = 10, kMultiple = 64, kByte = 256;  // magic, version and length
  std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  const std::size_t end = (kBefore + text.size() + kMultiple) / kMultiple * kMultiple;
  text.resize(end - kBefore - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", kBefore - 2);
  header += static_cast<char>(text.size() % kByte);
  header += static_cast<char>(text.size() / kByte);
  return header + text;
}

}  // namespace

std::filesystem::path names_file_of(const std::filesystem::path& embeddings) {
  std::filesystem::path names = embeddings;
  return names.extension() == ".npy" ? names.replace_extension(".txt") : names += ".txt";
}

void write_names(const std::filesystem::path& embeddings, const std::vector<std::string>& names) {
  AtomicFile file(names_file_of(embeddings));
  for (const std::string& name : names) file.write(on_one_line(name) + "\n");
  file.commit();
}

EmbeddingsFile::EmbeddingsFile(const std::filesystem::path& out, std::int64_t rows,
                               std::int64_t columns)
    : file_(out) {
  file_.write(npy_header(rows, columns));
}

}  // namespace ringlet::app
