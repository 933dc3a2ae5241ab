// Pairs of faces as a Python pickle, `.bin`, in which InsightFace's sets have them: a tuple or list
// of two,
//
//   2k pictures, each the bytes of a JPEG or PNG: bytes, or an array of u1
//   k answers: bools, or an array of b1
//
// A pickle is a program for a machine with a stack. This reader is such a machine, but its values
// are of a few kinds only: none, bool, int, text, bytes, list, tuple and one kind of array. A name
// that the program gives is a tag, and nothing is ever called. What is not on the list is an error:
//
//   protocols  2 to 5
//   opcodes    PROTO FRAME STOP MARK, EMPTY_LIST APPEND APPENDS LIST, EMPTY_TUPLE TUPLE TUPLE1
//              TUPLE2 TUPLE3, NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2,
//              SHORT_BINSTRING BINSTRING SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8, BINUNICODE
//              SHORT_BINUNICODE, BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET, GLOBAL
//              STACK_GLOBAL REDUCE BUILD
//   names      _codecs.encode (Python 3 writes bytes so in protocol 2), numpy.ndarray, numpy.dtype,
//              numpy.core or numpy._core .multiarray._reconstruct, .multiarray.scalar,
//              .numeric._frombuffer
//   limits     32 levels, 2^22 values, and no more bytes than the file has
//
// Source: pickletools of CPython 3.13.
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

/// Whether bytes begin as a pickle of a protocol that says so: 2 or later.
bool begins_pickle(std::span<const std::uint8_t> file);

/// The pairs of a whole `file`, which has to outlive them; `name` is for messages. Throws
/// DataError: another protocol, opcode or name, more than is allowed, a third part, no pair,
/// pictures that are not twice the answers, an answer that is no bool, a picture that is none by
/// its first bytes.
PickledPairs read_pickled_pairs(std::span<const std::uint8_t> file, const std::string& name);

}  // namespace ringlet::data
