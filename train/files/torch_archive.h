// TorchArchive: the weights in a file that torch.save() wrote (`.pth`, `.pt`, pytorch_model.bin),
// as if they lay in a safetensors file: a header, and the tensors' bytes in its order.
//
//   NAME/data.pkl    which tensors there are (torch_pickle.h)
//   NAME/byteorder   "little", in files of PyTorch 2
//   NAME/data/K      the numbers of storage K, stored as they are
//
// Before version 1.6 it was no archive but pickles, and the storages behind them (torch_pickle.h).
//
// A tensor is any view of a storage: its bytes are gathered row by row. Several may share one, so
// together they, or what they lie between, may take more bytes than the file has, up to kMostShared
// times as many.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/files/safetensors_header.h"
#include "train/files/torch_pickle.h"
#include "train/files/zip_directory.h"

namespace ringlet::train {

inline constexpr std::uint64_t kMostShared = 8;

class TorchArchive {
 public:
  /// Reads what is in it. `bytes`: of the file, whose `name` is for messages. Throws FileError.
  TorchArchive(std::unique_ptr<std::istream> file, std::uint64_t bytes, std::string name);

  /// The header that a safetensors file of these tensors would have.
  SafetensorsHeader header() const;
  /// The next `bytes` bytes of the tensors, in the header's order.
  void read(void* destination, std::uint64_t bytes);
  /// Of the whole file (byte_sum.h).
  std::string sum();

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void take(std::uint64_t from, void* destination, std::uint64_t bytes);
  std::string text_of(const ZipEntry& entry, std::uint64_t most);
  void find_entries(const std::vector<ZipEntry>& entries);
  void read_archive();
  void read_old();
  void require_size() const;
  void gather(const TorchTensor& tensor);

  std::string name_;
  std::unique_ptr<std::istream> file_;
  std::uint64_t bytes_ = 0;
  ZipEntry pickle_, byte_order_;
  std::map<std::string, ZipEntry> storages_;
  TorchWeights weights_;
  std::size_t tensor_ = 0;      // that is being read
  std::uint64_t done_ = 0;      // bytes of it
  std::vector<char> gathered_;  // all of it, where it does not lie in the file as it is
};

}  // namespace ringlet::train
