#include "train/files/torch_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/byte_sum.h"
#include "base/files/file_error.h"
#include "base/one_line.h"
#include "train/files/foreign_format.h"

namespace ringlet::train {

namespace {

std::uint64_t width_of(const TorchTensor& tensor) {
  return static_cast<std::uint64_t>(safetensors_dtype_bytes(tensor.spec.dtype));
}

/// Its elements lie inside of its storage, so this is no more than the file has.
std::uint64_t bytes_in(const TorchTensor& tensor) {
  std::uint64_t bytes = width_of(tensor);
  if (std::ranges::find(tensor.spec.shape, 0) != tensor.spec.shape.end()) return 0;
  for (const std::int64_t extent : tensor.spec.shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

/// Row by row without a gap.
bool lies_in_order(const TorchTensor& tensor) {
  std::int64_t step = 1;
  for (std::size_t i = tensor.strides.size(); i-- > 0; step *= tensor.spec.shape[i]) {
    if (tensor.spec.shape[i] != 1 && tensor.strides[i] != step) return false;
  }
  return true;
}

/// Bytes from its first element to its last one.
std::uint64_t span_of(const TorchTensor& tensor) {
  if (bytes_in(tensor) == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    last += (tensor.spec.shape[i] - 1) * tensor.strides[i];
  }
  return (static_cast<std::uint64_t>(last) + 1) * width_of(tensor);
}

}  // namespace

TorchArchive::TorchArchive(std::unique_ptr<std::istream> file, std::uint64_t bytes,
                           std::string name)
    : name_(std::move(name)), file_(std::move(file)), bytes_(bytes) {
  std::string head(std::min<std::uint64_t>(bytes_, kForeignHead), '\0');
  take(0, head.data(), head.size());
  begins_old_torch(head) ? read_old() : read_archive();
  require_size();
}

void TorchArchive::read_archive() {
  find_entries(read_zip_directory(*file_, bytes_, name_));
  constexpr std::uint64_t kMostLetters = 100;
  if (!byte_order_.name.empty() && text_of(byte_order_, kMostLetters) != "little") {
    fail("its numbers are not little-endian; save the weights again on a machine that is");
  }
  const std::string pickle = text_of(pickle_, kMaxSafetensorsHeader);
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& [key, entry] : storages_) sizes[key] = entry.bytes;
  weights_ = read_torch_pickle(
      {reinterpret_cast<const std::uint8_t*>(pickle.data()), pickle.size()}, sizes, name_);
}

void TorchArchive::read_old() {
  std::string head(std::min(bytes_, kMaxSafetensorsHeader), '\0');
  take(0, head.data(), head.size());
  OldTorchFile old =
      read_old_torch({reinterpret_cast<const std::uint8_t*>(head.data()), head.size()}, name_);
  weights_ = std::move(old.weights);
  std::uint64_t at = old.begin;
  for (const OldTorchStorage& storage : old.storages) {
    std::uint64_t elements = 0;
    if (bytes_ - at < sizeof elements || bytes_ - at - sizeof elements < storage.bytes) {
      fail(fmt::format("ends before the {} bytes of storage {}; fetch the file again",
                       storage.bytes, on_one_line(storage.key)));
    }
    take(at, &elements, sizeof elements);
    if (elements != storage.elements) {
      fail(fmt::format("its storage {} has {} elements, and {} are claimed; fetch the file again",
                       on_one_line(storage.key), elements, storage.elements));
    }
    at += sizeof elements;
    storages_[storage.key] = {storage.key, at, storage.bytes};
    at += storage.bytes;
  }
  if (at != bytes_) {
    fail(fmt::format("has {} bytes behind its last storage; fetch the file again", bytes_ - at));
  }
}

void TorchArchive::fail(const std::string& what) const { throw FileError(name_ + ": " + what); }

void TorchArchive::take(std::uint64_t from, void* destination, std::uint64_t bytes) {
  file_->clear();
  file_->seekg(static_cast<std::streamoff>(from));
  file_->read(static_cast<char*>(destination), static_cast<std::streamsize>(bytes));
  if (!*file_) fail("cannot be read to its end; check the disk");
}

std::string TorchArchive::text_of(const ZipEntry& entry, std::uint64_t most) {
  if (entry.bytes > most) {
    fail(
        fmt::format("its entry '{}' has {} bytes, where {} at most are read; fetch or save the "
                    "file again",
                    on_one_line(entry.name), entry.bytes, most));
  }
  std::string text(entry.bytes, '\0');
  take(entry.begin, text.data(), text.size());
  return text;
}

void TorchArchive::find_entries(const std::vector<ZipEntry>& entries) {
  constexpr std::string_view kPickle = "/data.pkl";
  for (const ZipEntry& entry : entries) {
    if (!entry.name.ends_with(kPickle)) continue;
    if (entry.name.find('/') != entry.name.size() - kPickle.size()) continue;
    if (!pickle_.name.empty()) {
      fail("there are two pickles in it, '" + on_one_line(pickle_.name) + "' and '" +
           on_one_line(entry.name) + "'; fetch or save the file again");
    }
    pickle_ = entry;
  }
  if (pickle_.name.empty()) fail("there is no data.pkl in the archive; name a file of weights");
  const std::string folder = pickle_.name.substr(0, pickle_.name.find('/') + 1);
  const std::string data = folder + "data/";
  for (const ZipEntry& entry : entries) {
    if (entry.name == folder + "constants.pkl" || entry.name.starts_with(folder + "code/")) {
      const ForeignFormat script = torch_script_format();
      fail(fmt::format("is {}, not safetensors; {}", script.is, script.remedy));
    }
    if (entry.name == folder + "byteorder") byte_order_ = entry;
    if (entry.name.starts_with(data)) storages_[entry.name.substr(data.size())] = entry;
  }
}

void TorchArchive::require_size() const {
  std::uint64_t all = 0;
  for (const TorchTensor& tensor : weights_.tensors)
    all += std::max(bytes_in(tensor), span_of(tensor));
  if (all / kMostShared <= bytes_) return;
  fail(
      fmt::format("its tensors would take {} bytes, and the file has {}: they share their numbers; "
                  "save them in Python as {{name: tensor.clone() for ...}}",
                  all, bytes_));
}

SafetensorsHeader TorchArchive::header() const {
  SafetensorsHeader header;
  header.is_torch = true;
  header.under = weights_.under;
  std::uint64_t end = 0;
  for (const TorchTensor& tensor : weights_.tensors) {
    const std::uint64_t begin = end;
    end += bytes_in(tensor);
    header.tensors.push_back({tensor.spec, begin, end});
  }
  return header;
}

void TorchArchive::read(void* destination, std::uint64_t bytes) {
  auto* to = static_cast<char*>(destination);
  while (bytes > 0) {
    const TorchTensor& tensor = weights_.tensors.at(tensor_);
    const std::uint64_t all = bytes_in(tensor), piece = std::min(bytes, all - done_);
    if (piece > 0 && lies_in_order(tensor)) {
      const auto first = static_cast<std::uint64_t>(tensor.first) * width_of(tensor);
      take(storages_.at(tensor.storage).begin + first + done_, to, piece);
    } else if (piece > 0) {
      if (done_ == 0) gather(tensor);
      std::memcpy(to, gathered_.data() + done_, piece);
    }
    to += piece;
    bytes -= piece;
    done_ += piece;
    if (done_ < all) continue;
    ++tensor_;
    done_ = 0;
  }
}

/// All that its elements lie between is read at once.
void TorchArchive::gather(const TorchTensor& tensor) {
  const std::uint64_t width = width_of(tensor);
  const std::vector<std::int64_t>& shape = tensor.spec.shape;
  std::vector<char> between(span_of(tensor));
  take(storages_.at(tensor.storage).begin + static_cast<std::uint64_t>(tensor.first) * width,
       between.data(), between.size());

  gathered_.resize(bytes_in(tensor));
  std::vector<std::int64_t> index(shape.size());
  std::int64_t from = 0;
  for (std::uint64_t to = 0; to < gathered_.size(); to += width) {
    std::memcpy(gathered_.data() + to, between.data() + static_cast<std::uint64_t>(from) * width,
                width);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] == 1) continue;  // whose step may be any number
      from += tensor.strides[i];
      if (++index[i] < shape[i]) break;
      from -= shape[i] * tensor.strides[i];
      index[i] = 0;
    }
  }
}

std::string TorchArchive::sum() {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;
  std::vector<char> piece(std::min(kPiece, bytes_));
  ByteSum sum;
  for (std::uint64_t at = 0; at < bytes_; at += piece.size()) {
    const std::uint64_t size = std::min(kPiece, bytes_ - at);
    take(at, piece.data(), size);
    sum.add(piece.data(), size);
  }
  return sum.finish();
}

}  // namespace ringlet::train
