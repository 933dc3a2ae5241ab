// Pairs of faces as a Python pickle, `.bin`, in which InsightFace's sets have them: a tuple or list
// of two,
//
//   2k pictures, each the bytes of a JPEG or PNG: bytes, or an array of u1
//   k answers: bools, or an array of b1
//
// A pickle is a program. It is run by a machine that calls nothing (base/pickle_machine.h), without
// objects, and 32 levels deep. What it may name:
//
//   _codecs.encode (Python 3 writes bytes so in protocol 2), numpy.ndarray, numpy.dtype,
//   numpy.core or numpy._core .multiarray._reconstruct, .multiarray.scalar, .numeric._frombuffer
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

struct PickledPairs {
  /// In the file, or in `decoded`.
  std::vector<std::span<const std::uint8_t>> pictures;
  std::vector<bool> same;
  std::deque<std::string> decoded{};  ///< bytes that protocol 2 has as text
};

/// The pairs of a whole `file`, which has to outlive them; `name` is for messages. Throws
/// DataError: another protocol, opcode or name, more than is allowed, a third part, no pair,
/// pictures that are not twice the answers, an answer that is no bool, a picture that is none by
/// its first bytes.
PickledPairs read_pickled_pairs(std::span<const std::uint8_t> file, const std::string& name);

}  // namespace ringlet::data
