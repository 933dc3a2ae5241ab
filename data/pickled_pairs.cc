#include "data/pickled_pairs.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/data_error.h"
#include "base/one_line.h"
#include "base/pickle_machine.h"
#include "data/images/image_format.h"

namespace ringlet::data {

namespace {

using ByteView = std::span<const std::uint8_t>;

/// What a name stands for.
enum class Tag : std::uint8_t { encode, ndarray, dtype, reconstruct, scalar, frombuffer };

std::optional<Tag> tag_of(std::string_view module, std::string_view name) {
  const auto is = [&](std::string_view wanted, std::string_view of_it) {
    return module == wanted && name == of_it;
  };
  const auto is_core = [&](std::string_view below, std::string_view of_it) {
    if (name != of_it) return false;
    for (const std::string_view core : {"numpy.core.", "numpy._core."}) {
      if (module.starts_with(core) && module.substr(core.size()) == below) return true;
    }
    return false;
  };
  if (is("_codecs", "encode")) return Tag::encode;
  if (is("numpy", "ndarray")) return Tag::ndarray;
  if (is("numpy", "dtype")) return Tag::dtype;
  if (is_core("multiarray", "_reconstruct")) return Tag::reconstruct;
  if (is_core("multiarray", "scalar")) return Tag::scalar;
  if (is_core("numeric", "_frombuffer")) return Tag::frombuffer;
  return {};
}

/// What an object is. Its `detail` is its type, 'u' or 'b', or 0 of an array that has no bytes yet.
enum Object : std::uint8_t { kDtype, kArray };

class PairsMachine : public PickleMachine {
 public:
  PairsMachine(ByteView file, const std::string& name, std::deque<std::string>& decoded)
      : PickleMachine(file, {.things = "pairs", .most_levels = 32, .objects = false}),
        name_(name),
        decoded_(decoded) {}

  void throw_error(const std::string& what) const override { throw DataError(name_ + ": " + what); }

 private:
  std::optional<std::uint8_t> type_of(std::string_view module, std::string_view name) override {
    const std::optional<Tag> tag = tag_of(module, name);
    return tag ? std::optional(static_cast<std::uint8_t>(*tag)) : std::nullopt;
  }

  Ref call(std::uint8_t function, const Value& arguments) override {
    switch (static_cast<Tag>(function)) {
      case Tag::encode:
        if (word(arguments, 1) != "latin1") damaged();
        decoded_.push_back(latin_1(argument(arguments, 0, Kind::text).bytes));
        return make({.kind = Kind::bytes, .bytes = bytes_of(decoded_.back())});
      case Tag::dtype:
        return dtype(word(arguments, 0));
      case Tag::reconstruct: {
        const Value& type = argument(arguments, 0, Kind::name);
        if (static_cast<Tag>(type.type) != Tag::ndarray) damaged();
        return make({.kind = Kind::object, .type = kArray});
      }
      case Tag::scalar: {
        const Value& type = dtype_in(arguments, 0);
        const Value& value = argument(arguments, 1, Kind::bytes);
        if (type.detail != 'b' || value.bytes.size() != 1) damaged();
        return truth(value.bytes[0] != 0);
      }
      case Tag::frombuffer: {
        Value array{.kind = Kind::object, .type = kArray};
        fill(array, argument(arguments, 2, Kind::tuple), dtype_in(arguments, 1),
             argument(arguments, 0, Kind::bytes));
        return make(std::move(array));
      }
      case Tag::ndarray:
        break;
    }
    damaged();
  }

  /// Of a dtype nothing matters, of an array (1, shape, dtype, order, bytes).
  void build(Value& built, const Value& state) override {
    if (state.kind != Kind::tuple || built.kind != Kind::object) damaged();
    if (built.type == kDtype) return;
    constexpr std::size_t kShape = 1, kType = 2, kBytes = 4;
    if (built.detail != 0) damaged();
    fill(built, argument(state, kShape, Kind::tuple), dtype_in(state, kType),
         argument(state, kBytes, Kind::bytes));
  }

  const Value& dtype_in(const Value& arguments, std::size_t i) const {
    const Value& value = argument(arguments, i, Kind::object);
    if (value.type != kDtype) damaged();
    return value;
  }

  Ref dtype(std::string_view type) {
    if (type == "u1" || type == "|u1") {
      return make({.kind = Kind::object, .type = kDtype, .detail = 'u'});
    }
    if (type == "b1" || type == "|b1" || type == "?") {
      return make({.kind = Kind::object, .type = kDtype, .detail = 'b'});
    }
    constexpr std::size_t kMost = 20;
    fail("the pickle has an array of " + on_one_line(std::string(type.substr(0, kMost))) +
         ", where u1 and b1 are known; write its numbers so");
  }

  void fill(Value& array, const Value& shape, const Value& type, const Value& bytes) const {
    if (shape.items.size() != 1) {
      fail("the pickle has an array of " + std::to_string(shape.items.size()) +
           " extents, and a picture's bytes have one; write them so");
    }
    const Value& extent = argument(shape, 0, Kind::integer);
    if (extent.number != static_cast<std::int64_t>(bytes.bytes.size())) damaged();
    array.detail = type.detail;
    array.bytes = bytes.bytes;
  }

  static ByteView bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }

  /// UTF-8 whose letters are bytes.
  std::string latin_1(ByteView utf8) const {
    std::string bytes;
    for (std::size_t i = 0; i < utf8.size(); ++i) {
      constexpr unsigned kOne = 0x80, kTwo = 0xC2, kMore = 0x3F;
      const unsigned first = utf8[i];
      if (first < kOne) {
        bytes += static_cast<char>(first);
        continue;
      }
      const bool has_second = i + 1 < utf8.size() && utf8[i + 1] >> 6 == 2;
      if ((first != kTwo && first != kTwo + 1) || !has_second) damaged();
      bytes += static_cast<char>((first - kTwo + 2) << 6 | (utf8[++i] & kMore));
    }
    return bytes;
  }

  const std::string& name_;
  std::deque<std::string>& decoded_;
};

using Kind = PickleMachine::Kind;
using Value = PickleMachine::Value;

bool is_array_of(char type, const Value& value) {
  return value.kind == Kind::object && value.type == kArray && value.detail == type;
}

std::vector<bool> answers_in(const PairsMachine& machine, const Value& answers) {
  std::vector<bool> same;
  if (is_array_of('b', answers)) {
    for (const std::uint8_t answer : answers.bytes) same.push_back(answer != 0);
    return same;
  }
  if (answers.kind != Kind::list && answers.kind != Kind::tuple) {
    machine.fail("the pickle's second part is no list of answers; write pictures and answers");
  }
  for (const PickleMachine::Ref item : answers.items) {
    const Value& answer = machine.at(item);
    if (answer.kind != Kind::boolean) {
      machine.fail("the answer of pair " + std::to_string(same.size()) +
                   " is neither True nor False; write it so");
    }
    same.push_back(answer.number != 0);
  }
  return same;
}

}  // namespace

PickledPairs read_pickled_pairs(ByteView file, const std::string& name) {
  PickledPairs pairs;
  PairsMachine machine(file, name, pairs.decoded);
  const Value& whole = machine.at(machine.run());
  const bool has_parts = whole.kind == Kind::tuple || whole.kind == Kind::list;
  if (!has_parts || whole.items.size() != 2) {
    machine.fail("the pickle has " + std::to_string(has_parts ? whole.items.size() : 1) +
                 " parts, where two stand: pictures and answers");
  }
  const Value& pictures = machine.at(whole.items[0]);
  if (pictures.kind != Kind::list && pictures.kind != Kind::tuple) {
    machine.fail("the pickle's first part is no list of pictures; write pictures and answers");
  }
  pairs.same = answers_in(machine, machine.at(whole.items[1]));
  if (pairs.same.empty()) machine.fail("there is no pair in it; name a file with pairs");
  if (pictures.items.size() != 2 * pairs.same.size()) {
    machine.fail("there are " + std::to_string(pictures.items.size()) + " pictures for " +
                 std::to_string(pairs.same.size()) +
                 " answers, where twice as many stand; fetch the file again");
  }
  for (const PickleMachine::Ref item : pictures.items) {
    const Value& picture = machine.at(item);
    if ((picture.kind != Kind::bytes && !is_array_of('u', picture)) ||
        image_format(picture.bytes) == ImageFormat::unknown) {
      machine.fail("picture " + std::to_string(pairs.pictures.size()) +
                   " is none by its first bytes; write JPEGs or PNGs as their files have them");
    }
    pairs.pictures.push_back(picture.bytes);
  }
  return pairs;
}

}  // namespace ringlet::data
