#include "data/pickled_pairs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/data_error.h"
#include "base/one_line.h"
#include "data/images/image_format.h"

namespace ringlet::data {

namespace {

using ByteView = std::span<const std::uint8_t>;

constexpr std::uint32_t kMostValues = 1 << 22;
constexpr std::uint16_t kMostLevels = 32;
constexpr std::uint8_t kProto = 0x80;

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

enum class Kind : std::uint8_t {
  mark,
  none,
  boolean,
  integer,
  text,
  bytes,
  list,
  tuple,
  tag,
  dtype,
  array
};

using Ref = std::uint32_t;

struct Value {
  Kind kind = Kind::none;
  bool filled = false;  // an array that has its bytes
  char type = 0;        // of a dtype or an array: 'u' or 'b'
  std::uint16_t levels = 0;
  std::int64_t number = 0;  // of a bool, an int or a tag
  ByteView bytes{};         // of text, bytes and arrays
  std::vector<Ref> items{};
};

class Machine {
 public:
  Machine(ByteView file, const std::string& name, std::deque<std::string>& decoded)
      : file_(file), name_(name), decoded_(decoded) {
    none_ = make({.kind = Kind::none});
    for (const bool truth : {false, true}) {
      truths_[truth] = make({.kind = Kind::boolean, .number = truth});
    }
    empty_ = make({.kind = Kind::tuple, .levels = 1});
    mark_ = make({.kind = Kind::mark});
  }

  /// Runs the program. What it leaves.
  Ref run() {
    if (!begins_pickle(file_)) {
      fail("is no pickle of protocol 2 to 5; write it with one of these");
    }
    for (;;) {
      const std::uint8_t opcode = *take(1).data();
      if (opcode == '.') break;
      step(opcode);
    }
    if (stack_.size() != 1 || at(stack_[0]).kind == Kind::mark) damaged();
    if (at_ != file_.size()) {
      fail("has " + std::to_string(file_.size() - at_) +
           " bytes behind the pickle's end; fetch the file again");
    }
    return stack_[0];
  }

  const Value& at(Ref ref) const { return values_[ref]; }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(name_ + ": " + what); }

 private:
  [[noreturn]] void damaged() const {
    fail("the pickle is damaged at byte " + std::to_string(at_) + "; fetch the file again");
  }

  ByteView take(std::uint64_t count) {
    const std::uint64_t left = file_.size() - at_;
    if (count > left) {
      fail("the pickle claims " + std::to_string(count) + " bytes at byte " + std::to_string(at_) +
           ", and " + std::to_string(left) + " are left; fetch the file again");
    }
    const ByteView bytes = file_.subspan(at_, count);
    at_ += count;
    return bytes;
  }

  /// A little-endian number of so many bytes.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(bytes).data(), bytes);
    return value;
  }

  /// Up to the end of the line.
  std::string_view line() {
    const ByteView rest = file_.subspan(at_);
    const auto end = std::find(rest.begin(), rest.end(), '\n');
    if (end == rest.end()) damaged();
    const ByteView text = take(static_cast<std::uint64_t>(end - rest.begin()) + 1);
    return as_text(text.first(text.size() - 1));
  }

  static std::string_view as_text(ByteView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  Ref make(Value value) {
    if (values_.size() == kMostValues) {
      fail("the pickle has more than " + std::to_string(kMostValues) +
           " values; it is no set of pairs");
    }
    if (value.levels > kMostLevels) too_deep();
    values_.push_back(std::move(value));
    return static_cast<Ref>(values_.size() - 1);
  }

  [[noreturn]] void too_deep() const {
    fail("the pickle nests deeper than " + std::to_string(kMostLevels) +
         " levels, and pairs two; fetch the file again");
  }

  /// Lists and marks are what stays open on the stack.
  std::uint64_t opens(Ref ref) const {
    return at(ref).kind == Kind::list || at(ref).kind == Kind::mark ? 1 : 0;
  }

  void push(Ref ref) {
    if (stack_.size() == kMostValues) too_deep();
    open_ += opens(ref);
    if (open_ > kMostLevels) too_deep();
    stack_.push_back(ref);
  }

  Ref pop() {
    if (stack_.empty() || stack_.back() == mark_) damaged();
    const Ref ref = stack_.back();
    stack_.pop_back();
    open_ -= opens(ref);
    return ref;
  }

  const Value& top(Kind kind) const {
    if (stack_.empty() || at(stack_.back()).kind != kind) damaged();
    return at(stack_.back());
  }

  /// What stands above the last mark, which goes too.
  std::vector<Ref> pop_to_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), mark_);
    if (mark == stack_.rend()) damaged();
    std::vector<Ref> items(mark.base(), stack_.end());
    for (const Ref item : items) open_ -= opens(item);
    --open_;
    stack_.erase(mark.base() - 1, stack_.end());
    return items;
  }

  std::uint16_t levels_over(const std::vector<Ref>& items) const {
    std::uint16_t levels = 0;
    for (const Ref item : items) levels = std::max(levels, at(item).levels);
    return static_cast<std::uint16_t>(levels + 1);
  }

  void push_items(Kind kind, std::vector<Ref> items) {
    const std::uint16_t levels = levels_over(items);
    push(make({.kind = kind, .levels = levels, .items = std::move(items)}));
  }

  void push_tuple(std::size_t size) {
    std::vector<Ref> items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push_items(Kind::tuple, std::move(items));
  }

  void append(const std::vector<Ref>& items) {
    (void)top(Kind::list);
    Value& list = values_[stack_.back()];
    list.levels = std::max(list.levels, levels_over(items));
    if (list.levels > kMostLevels) too_deep();
    listed_ += items.size();  // the same value may be listed again and again
    if (listed_ > kMostValues) too_deep();
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  void push_integer(std::int64_t value) { push(make({.kind = Kind::integer, .number = value})); }
  void push_bytes(Kind kind, std::uint64_t count) {
    push(make({.kind = kind, .bytes = take(count)}));
  }

  void put(std::uint64_t key) {
    if (stack_.empty()) damaged();
    memo_[key] = stack_.back();
  }
  void get(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) damaged();
    push(found->second);
  }

  void step(std::uint8_t opcode) {
    switch (opcode) {
      case kProto:
        return protocol(number(1));
      case 0x95:
        return frame(number(8));
      case '(':
        return push(mark_);
      case ']':
        return push(make({.kind = Kind::list, .levels = 1}));
      case 'a': {
        const Ref item = pop();
        return append({item});
      }
      case 'e': {
        const std::vector<Ref> items = pop_to_mark();
        return append(items);
      }
      case 'l':
        return push_items(Kind::list, pop_to_mark());
      case ')':
        return push(empty_);
      case 't':
        return push_items(Kind::tuple, pop_to_mark());
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 'N':
        return push(none_);
      case 0x88:
        return push(truths_[1]);
      case 0x89:
        return push(truths_[0]);
      case 'I':
        return integer_in_text();
      case 'J':
        return push_integer(static_cast<std::int32_t>(number(4)));
      case 'K':
        return push_integer(static_cast<std::int64_t>(number(1)));
      case 'M':
        return push_integer(static_cast<std::int64_t>(number(2)));
      case 'U':
      case 'C':
        return push_bytes(Kind::bytes, number(1));
      case 'T':
      case 'B':
        return push_bytes(Kind::bytes, number(4));
      case 0x8E:
      case 0x96:
        return push_bytes(Kind::bytes, number(8));
      case 'X':
        return push_bytes(Kind::text, number(4));
      case 0x8C:
        return push_bytes(Kind::text, number(1));
      case 'q':
        return put(number(1));
      case 'r':
        return put(number(4));
      case 0x94:
        return put(memo_.size());
      case 'h':
        return get(number(1));
      case 'j':
        return get(number(4));
      case 'c': {
        const std::string_view module = line();
        return name(module, line());
      }
      case 0x93: {
        const std::string_view of_module = as_text(top(Kind::text).bytes);
        (void)pop();
        const std::string_view module = as_text(top(Kind::text).bytes);
        (void)pop();
        return name(module, of_module);
      }
      case 'R':
        return reduce();
      case 'b':
        return build();
      default:
        fail("the pickle has the opcode " + std::to_string(opcode) + " at byte " +
             std::to_string(at_ - 1) + ", which no pairs need; it is not run");
    }
  }

  void protocol(std::uint64_t version) const {
    constexpr std::uint64_t kFirst = 2, kLast = 5;
    if (version >= kFirst && version <= kLast) return;
    fail("is a pickle of protocol " + std::to_string(version) +
         ", and 2 to 5 are known; write it with one of these");
  }

  void frame(std::uint64_t bytes) const {
    if (bytes <= file_.size() - at_) return;
    fail("the pickle claims " + std::to_string(bytes) + " bytes at byte " + std::to_string(at_) +
         ", and " + std::to_string(file_.size() - at_) + " are left; fetch the file again");
  }

  void integer_in_text() {
    const std::string_view digits = line();
    if (digits == "00" || digits == "01") return push(truths_[digits == "01" ? 1 : 0]);
    std::int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) damaged();
    push_integer(value);
  }

  void name(std::string_view module, std::string_view of_module) {
    const std::optional<Tag> tag = tag_of(module, of_module);
    if (!tag) {
      constexpr std::size_t kMost = 60;
      const std::string full =
          std::string(module.substr(0, kMost)) + "." + std::string(of_module.substr(0, kMost));
      fail("the pickle names " + on_one_line(full) +
           ", which no pairs need; it is not called, and the file is not read further");
    }
    push(make({.kind = Kind::tag, .number = static_cast<std::int64_t>(*tag)}));
  }

  /// The argument of that kind.
  const Value& argument(const Value& arguments, std::size_t i, Kind kind) const {
    if (i >= arguments.items.size() || at(arguments.items[i]).kind != kind) damaged();
    return at(arguments.items[i]);
  }
  /// Python 2 has a str as bytes.
  std::string_view word(const Value& arguments, std::size_t i) const {
    if (i >= arguments.items.size()) damaged();
    const Value& value = at(arguments.items[i]);
    if (value.kind != Kind::text && value.kind != Kind::bytes) damaged();
    return as_text(value.bytes);
  }

  void reduce() {
    const Ref arguments_at = pop();
    const Value arguments = at(arguments_at);
    if (arguments.kind != Kind::tuple) damaged();
    const Ref function = pop();
    if (at(function).kind != Kind::tag) damaged();
    switch (static_cast<Tag>(at(function).number)) {
      case Tag::encode:
        if (word(arguments, 1) != "latin1") damaged();
        decoded_.push_back(latin_1(argument(arguments, 0, Kind::text).bytes));
        return push(make({.kind = Kind::bytes, .bytes = bytes_of(decoded_.back())}));
      case Tag::dtype:
        return dtype(word(arguments, 0));
      case Tag::reconstruct: {
        const Value& type = argument(arguments, 0, Kind::tag);
        if (static_cast<Tag>(type.number) != Tag::ndarray) damaged();
        return push(make({.kind = Kind::array}));
      }
      case Tag::scalar: {
        const Value& type = argument(arguments, 0, Kind::dtype);
        const Value& value = argument(arguments, 1, Kind::bytes);
        if (type.type != 'b' || value.bytes.size() != 1) damaged();
        return push(truths_[value.bytes[0] != 0 ? 1 : 0]);
      }
      case Tag::frombuffer: {
        Value array{.kind = Kind::array};
        fill(array, argument(arguments, 2, Kind::tuple), argument(arguments, 1, Kind::dtype),
             argument(arguments, 0, Kind::bytes));
        return push(make(std::move(array)));
      }
      case Tag::ndarray:
        break;
    }
    damaged();
  }

  void dtype(std::string_view type) {
    if (type == "u1" || type == "|u1") return push(make({.kind = Kind::dtype, .type = 'u'}));
    if (type == "b1" || type == "|b1" || type == "?") {
      return push(make({.kind = Kind::dtype, .type = 'b'}));
    }
    constexpr std::size_t kMost = 20;
    fail("the pickle has an array of " + on_one_line(std::string(type.substr(0, kMost))) +
         ", where u1 and b1 are known; write its numbers so");
  }

  /// State is taken on: of a dtype nothing matters, of an array (1, shape, dtype, order, bytes).
  void build() {
    const Ref state_at = pop();
    const Value state = at(state_at);
    if (stack_.empty() || state.kind != Kind::tuple) damaged();
    Value& built = values_[stack_.back()];
    if (built.kind == Kind::dtype) return;
    constexpr std::size_t kShape = 1, kType = 2, kBytes = 4;
    if (built.kind != Kind::array || built.filled) damaged();
    fill(built, argument(state, kShape, Kind::tuple), argument(state, kType, Kind::dtype),
         argument(state, kBytes, Kind::bytes));
  }

  void fill(Value& array, const Value& shape, const Value& type, const Value& bytes) const {
    if (shape.items.size() != 1) {
      fail("the pickle has an array of " + std::to_string(shape.items.size()) +
           " extents, and a picture's bytes have one; write them so");
    }
    const Value& extent = argument(shape, 0, Kind::integer);
    if (extent.number != static_cast<std::int64_t>(bytes.bytes.size())) damaged();
    array.filled = true;
    array.type = type.type;
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

  ByteView file_;
  const std::string& name_;
  std::deque<std::string>& decoded_;
  std::uint64_t at_ = 0;
  std::vector<Value> values_;
  std::vector<Ref> stack_;
  std::unordered_map<std::uint64_t, Ref> memo_;
  std::uint64_t listed_ = 0, open_ = 0;
  Ref none_ = 0, empty_ = 0, mark_ = 0;
  std::array<Ref, 2> truths_{};
};

std::vector<bool> answers_in(const Machine& machine, const Value& answers) {
  std::vector<bool> same;
  if (answers.kind == Kind::array && answers.filled && answers.type == 'b') {
    for (const std::uint8_t answer : answers.bytes) same.push_back(answer != 0);
    return same;
  }
  if (answers.kind != Kind::list && answers.kind != Kind::tuple) {
    machine.fail("the pickle's second part is no list of answers; write pictures and answers");
  }
  for (const Ref item : answers.items) {
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

bool begins_pickle(ByteView file) { return file.size() >= 2 && file[0] == kProto; }

PickledPairs read_pickled_pairs(ByteView file, const std::string& name) {
  PickledPairs pairs;
  Machine machine(file, name, pairs.decoded);
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
  for (const Ref item : pictures.items) {
    const Value& picture = machine.at(item);
    const bool is_array = picture.kind == Kind::array && picture.filled && picture.type == 'u';
    if ((picture.kind != Kind::bytes && !is_array) ||
        image_format(picture.bytes) == ImageFormat::unknown) {
      machine.fail("picture " + std::to_string(pairs.pictures.size()) +
                   " is none by its first bytes; write JPEGs or PNGs as their files have them");
    }
    pairs.pictures.push_back(picture.bytes);
  }
  return pairs;
}

}  // namespace ringlet::data
