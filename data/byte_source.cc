#include "data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "base/data_error.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::uint8_t, 2> kGzipMagic{0x1F, 0x8B};

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using OwnedFile = std::unique_ptr<std::FILE, CloseFile>;

/// The bytes as they lie on the disk or in memory.
class PlainSource : public ByteSource {
 public:
  std::optional<std::uint64_t> size() const override { return stored(); }
  std::uint64_t at_most() const override { return stored(); }
  bool gzipped() const override { return false; }
  virtual void rewind() = 0;
};

class FileSource final : public PlainSource {
 public:
  explicit FileSource(const fs::path& path) : name_(path.string()) {
    file_.reset(std::fopen(name_.c_str(), "rb"));
    if (!file_) fail("cannot be opened", errno);
    std::error_code error;
    size_ = fs::file_size(path, error);
    if (error) fail("has no size", error.value());
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // the callers read in large pieces
  }

  std::size_t read(std::span<std::uint8_t> destination) override {
    const std::size_t got = std::fread(destination.data(), 1, destination.size(), file_.get());
    if (got < destination.size() && std::ferror(file_.get())) fail("cannot be read", errno);
    return got;
  }

  std::uint64_t stored() const override { return size_; }
  void rewind() override { std::rewind(file_.get()); }

 private:
  [[noreturn]] void fail(const char* what, int code) const {
    throw DataError(name_ + ": " + what + ": " + std::generic_category().message(code) +
                    "; check the file and its permissions");
  }

  std::string name_;
  OwnedFile file_;
  std::uint64_t size_ = 0;
};

class MemorySource final : public PlainSource {
 public:
  explicit MemorySource(std::span<const std::uint8_t> content)
      : content_(content), left_(content) {}

  std::size_t read(std::span<std::uint8_t> destination) override {
    const std::size_t got = std::min(destination.size(), left_.size());
    std::copy_n(left_.begin(), got, destination.begin());
    left_ = left_.subspan(got);
    return got;
  }

  std::uint64_t stored() const override { return content_.size(); }
  void rewind() override { left_ = content_; }

 private:
  std::span<const std::uint8_t> content_;
  std::span<const std::uint8_t> left_;
};

/// Inflates one or more gzip members, checking each one's CRC and length.
class GzipSource final : public ByteSource {
 public:
  GzipSource(std::string name, std::unique_ptr<PlainSource> compressed)
      : name_(std::move(name)),
        compressed_(std::move(compressed)),
        input_(std::min<std::uint64_t>(kInputBytes, stored() + 1)) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::uint8_t> destination) override {
    std::size_t filled = 0;
    while (filled < destination.size() && !ended_) {
      filled += inflate_into(destination.subspan(filled));
    }
    return filled;
  }

  std::optional<std::uint64_t> size() const override { return std::nullopt; }
  std::uint64_t at_most() const override {
    return kFreeBytes + kMostSwelling * compressed_->stored();
  }
  std::uint64_t stored() const override { return compressed_->stored(); }
  bool gzipped() const override { return true; }

 private:
  static constexpr std::size_t kInputBytes = std::size_t{1} << 16;

  /// Runs the decoder once; returns the number of raw bytes that came out.
  std::size_t inflate_into(std::span<std::uint8_t> destination) {
    if (stream_.avail_in == 0) refill();
    if (stream_.avail_in == 0) fail("the gzip stream breaks off");
    const auto room = static_cast<uInt>(std::min(destination.size(), std::size_t{1} << 30));
    stream_.next_out = destination.data();
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      finish_member();
    } else if (status != Z_OK) {
      fail(std::string("the gzip stream is damaged (") + reason() + ")");
    }
    raw_ += room - stream_.avail_out;
    if (raw_ > at_most()) fail_swollen();
    return room - stream_.avail_out;
  }

  void refill() {
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(compressed_->read(input_));
  }

  /// The file ends here, or another member follows (RFC 1952, 2.2).
  void finish_member() {
    if (stream_.avail_in == 0) refill();
    if (stream_.avail_in == 0) {
      ended_ = true;
    } else if (*stream_.next_in != kGzipMagic[0]) {
      fail("there are more bytes after the end of the gzip stream");
    } else {
      inflateReset(&stream_);
    }
  }

  const char* reason() const { return stream_.msg != nullptr ? stream_.msg : "no reason given"; }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_ + ": " + what + "; fetch the file again");
  }

  [[noreturn]] void fail_swollen() const {
    throw DataError(name_ + ": its " + std::to_string(stored()) + " bytes swell to more than " +
                    std::to_string(at_most()) + ", as only a file made to fill the memory does; " +
                    "if you trust it, unpack it with gunzip and name the result");
  }

  std::string name_;
  std::unique_ptr<PlainSource> compressed_;
  std::vector<std::uint8_t> input_;
  z_stream stream_{};
  std::uint64_t raw_ = 0;  // that came out so far, of all members
  bool ended_ = false;
};

std::unique_ptr<ByteSource> unpacked(std::unique_ptr<PlainSource> plain, std::string name) {
  std::array<std::uint8_t, 2> first{};
  const bool gzipped = plain->read(first) == first.size() && first == kGzipMagic;
  plain->rewind();
  if (!gzipped) return plain;
  return std::make_unique<GzipSource>(std::move(name), std::move(plain));
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status))
    throw DataError(file.string() + ": there is no such file; check the path");
  if (!fs::is_regular_file(status))
    throw DataError(file.string() + ": is not a regular file; name a file");

  return unpacked(std::make_unique<FileSource>(file), file.string());
}

std::unique_ptr<ByteSource> open_bytes(std::span<const std::uint8_t> content, std::string name) {
  return unpacked(std::make_unique<MemorySource>(content), std::move(name));
}

}  // namespace ringlet::data
