#include "train/files/safetensors_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "train/files/foreign_format.h"
#include "train/files/torch_archive.h"

namespace ringlet::train {

namespace fs = std::filesystem;

SafetensorsStream::SafetensorsStream(const fs::path& path) : name_(path.string()) {
  std::error_code error;
  if (!fs::exists(path, error)) fail("there is no such file; check the path");
  if (!fs::is_regular_file(path, error)) fail("is not a regular file; name a file of weights");
  remaining_ = fs::file_size(path, error);
  stream_ = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (error || !*stream_) fail("cannot be opened; check its permissions");
  const std::string head = first_bytes_of_file();
  if (is_torch_archive(head)) {
    torch_ = std::make_unique<TorchArchive>(std::move(stream_), remaining_, name_);
    header_ = torch_->header();
    return;
  }
  refuse_foreign(head);
  read_header();
}

SafetensorsStream::SafetensorsStream(SafetensorsStream&&) noexcept = default;
SafetensorsStream::~SafetensorsStream() = default;

SafetensorsStream::SafetensorsStream(std::unique_ptr<std::istream> stream, std::uint64_t bytes,
                                     std::string name)
    : name_(std::move(name)), stream_(std::move(stream)), remaining_(bytes) {
  read_header();
}

void SafetensorsStream::read(void* destination, std::uint64_t bytes) {
  if (torch_) return torch_->read(destination, bytes);
  stream_->read(static_cast<char*>(destination), static_cast<std::streamsize>(bytes));
  if (!*stream_) fail("cannot be read to its end; check the disk");
  remaining_ -= bytes;
  sum_.add(destination, bytes);
}

std::string SafetensorsStream::sum() {
  if (torch_) return torch_->sum();
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;
  std::vector<char> piece(std::min(kPiece, remaining_));
  while (remaining_ > 0) read(piece.data(), std::min(kPiece, remaining_));
  return sum_.finish();
}

std::string SafetensorsStream::first_bytes_of_file() {
  std::string head(std::min<std::uint64_t>(remaining_, kForeignHead), '\0');
  stream_->read(head.data(), static_cast<std::streamsize>(head.size()));
  stream_->clear();
  stream_->seekg(0);
  return head;
}

/// Tells of another format by its name, and not by what its bytes would mean here.
void SafetensorsStream::refuse_foreign(const std::string& head) const {
  if (const auto foreign = recognise_foreign(head)) {
    fail(fmt::format("is {}, not safetensors; {}", foreign->is, foreign->remedy));
  }
  std::uint64_t length = 0;
  if (head.size() > sizeof length && head[sizeof length] != '{') {
    std::memcpy(&length, head.data(), sizeof length);
  }
  if (length > kMaxSafetensorsHeader) {
    fail(
        fmt::format("is no safetensors file, and of no kind that is known here (it begins with "
                    "{}); name a file of weights",
                    first_bytes(head)));
  }
}

/// What stands between the length and the tensors.
void SafetensorsStream::read_header() {
  std::uint64_t length = 0;
  if (remaining_ < sizeof length)
    fail("truncated: there is no header; fetch or save the file again");
  read(&length, sizeof length);
  if (length > kMaxSafetensorsHeader) {
    fail(
        fmt::format("the header would be {} bytes long, at most {} are allowed; this is no "
                    "safetensors file",
                    length, kMaxSafetensorsHeader));
  }
  if (length > remaining_) {
    fail(
        fmt::format("truncated: the header is {} bytes long, {} follow; fetch or save the "
                    "file again",
                    length, remaining_));
  }
  std::string text(length, '\0');
  read(text.data(), length);
  header_ = parse_safetensors_header(name_, text, remaining_);
}

void SafetensorsStream::fail(const std::string& what) const {
  throw FileError(name_ + ": " + what);
}

}  // namespace ringlet::train
