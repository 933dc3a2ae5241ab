// The pickle in a file of torch.save(): which tensors there are, and where their numbers lie.
//
// It is run by a machine that calls nothing (base/pickle_machine.h), 100 levels deep. What it names
// is one of these, or the file is refused:
//
//   collections.OrderedDict                    a dict
//   torch._utils._rebuild_tensor, _v2, _v3     a tensor: storage, first element, shape, strides
//   torch._utils._rebuild_parameter            the tensor in it; also .._with_state, and
//                                              torch._tensor._rebuild_from_type_v2
//   torch.FloatStorage .., torch.float32 ..    types
//   others of torch, but of torch.nn           an object of which nothing is known; also of
//                                              argparse, collections, datetime, enum, lightning,
//                                              numpy, omegaconf, pathlib, pytorch_lightning, timm,
//                                              types and uuid, and Python's own types
//
// The weights are the dict of tensors that lies under one of the usual keys, else the outermost:
//
//   {"state_dict": {"conv1.weight": ..}, "optimizer": {..}, "epoch": 90}      under "state_dict"
//
// What else there is is passed over.
//
// Source: torch/serialization.py and torch/_utils.py of PyTorch 2.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/files/safetensors.h"

namespace ringlet::train {

struct TorchTensor {
  TensorSpec spec;
  std::string storage;                ///< whose numbers it has
  std::int64_t first = 0;             ///< element of the storage
  std::vector<std::int64_t> strides;  ///< in elements, one for each extent; none negative
};

struct TorchWeights {
  std::vector<TorchTensor> tensors;  ///< in the dict's order
  std::string under;                 ///< "state_dict", "checkpoint.model"; empty: the outermost
};

/// The weights of a whole `pickle`; `storages`: the bytes of each storage that is there. All of a
/// tensor lies in its storage, and no tensor has more elements than that. `file` is for messages.
/// Throws FileError naming it.
TorchWeights read_torch_pickle(std::span<const std::uint8_t> pickle,
                               const std::map<std::string, std::uint64_t>& storages,
                               const std::string& file);

/// A storage of a file of before version 1.6.
struct OldTorchStorage {
  std::string key;
  std::uint64_t elements = 0, bytes = 0;
};

/// Such a file: the pickles of a magic number, of the protocol, of what the machine was like, of
/// the weights and of the storages' keys. Then, for each key, its elements as a number of 64 bits
/// and their bytes.
struct OldTorchFile {
  TorchWeights weights;
  std::vector<OldTorchStorage> storages;  ///< in the file's order
  std::uint64_t begin = 0;                ///< of the first one, from the beginning of the file
};

/// Whether a file begins as such a one.
bool begins_old_torch(std::string_view head);

/// What the pickles at the `head` of a file say, which has all of them. Throws FileError.
OldTorchFile read_old_torch(std::span<const std::uint8_t> head, const std::string& file);

}  // namespace ringlet::train
