#include "base/pickle_machine.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <exception>
#include <utility>

#include "base/one_line.h"

namespace ringlet {

namespace {

constexpr std::uint32_t kMostValues = 1 << 22;
constexpr std::uint8_t kProto = 0x80;

}  // namespace

bool begins_pickle(std::span<const std::uint8_t> file) {
  return file.size() >= 2 && file[0] == kProto;
}

PickleMachine::PickleMachine(ByteView file, Purpose purpose) : file_(file), purpose_(purpose) {
  const auto keep = [this](Value value) {
    values_.push_back(std::move(value));
    return static_cast<Ref>(values_.size() - 1);
  };
  none_ = keep({.kind = Kind::none});
  for (const bool is : {false, true}) truths_[is] = keep({.kind = Kind::boolean, .number = is});
  empty_ = keep({.kind = Kind::tuple, .levels = 1});
  mark_ = keep({.kind = Kind::mark});
}

PickleMachine::Ref PickleMachine::run() {
  if (!begins_pickle(file_)) fail("is no pickle of protocol 2 to 5; write it with one of these");
  for (;;) {
    const std::uint8_t opcode = *take(1).data();
    if (opcode == '.') break;
    step(opcode);
  }
  if (stack_.size() != 1 || at(stack_[0]).kind == Kind::mark) damaged();
  if (at_ != file_.size() && !purpose_.more_behind) {
    fail("has " + std::to_string(file_.size() - at_) +
         " bytes behind the pickle's end; fetch the file again");
  }
  return stack_[0];
}

PickleMachine::Ref PickleMachine::outside(const Value&) { damaged(); }

void PickleMachine::fail(const std::string& what) const {
  throw_error(what);
  std::terminate();
}

void PickleMachine::damaged() const {
  fail("the pickle is damaged at byte " + std::to_string(at_) + "; fetch the file again");
}

void PickleMachine::too_few(std::uint64_t claimed) const {
  fail("the pickle claims " + std::to_string(claimed) + " bytes at byte " + std::to_string(at_) +
       ", and " + std::to_string(file_.size() - at_) + " are left; fetch the file again");
}

void PickleMachine::too_deep() const {
  fail("the pickle nests deeper than " + std::to_string(purpose_.most_levels) +
       " levels, which no " + purpose_.things + " do; fetch the file again");
}

void PickleMachine::too_many() const {
  fail("the pickle has more than " + std::to_string(kMostValues) + " values, which no " +
       purpose_.things + " need; fetch the file again");
}

PickleMachine::ByteView PickleMachine::take(std::uint64_t count) {
  if (count > file_.size() - at_) too_few(count);
  const ByteView bytes = file_.subspan(at_, count);
  at_ += count;
  return bytes;
}

/// A little-endian number of so many bytes.
std::uint64_t PickleMachine::number(std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(bytes).data(), bytes);
  return value;
}

/// Up to the end of the line.
std::string_view PickleMachine::line() {
  const ByteView rest = file_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), '\n');
  if (end == rest.end()) damaged();
  const ByteView text = take(static_cast<std::uint64_t>(end - rest.begin()) + 1);
  return as_text(text.first(text.size() - 1));
}

PickleMachine::Ref PickleMachine::make(Value value) {
  if (values_.size() == kMostValues) too_many();
  if (value.levels > purpose_.most_levels) too_deep();
  values_.push_back(std::move(value));
  return static_cast<Ref>(values_.size() - 1);
}

/// Lists, dicts and marks are what stays open on the stack.
std::uint64_t PickleMachine::opens(Ref ref) const {
  const Kind kind = at(ref).kind;
  return kind == Kind::list || kind == Kind::dict || kind == Kind::mark ? 1 : 0;
}

void PickleMachine::push(Ref ref) {
  if (stack_.size() == kMostValues) too_deep();
  open_ += opens(ref);
  if (open_ > purpose_.most_levels) too_deep();
  stack_.push_back(ref);
}

PickleMachine::Ref PickleMachine::pop() {
  if (stack_.empty() || stack_.back() == mark_) damaged();
  const Ref ref = stack_.back();
  stack_.pop_back();
  open_ -= opens(ref);
  return ref;
}

const PickleMachine::Value& PickleMachine::top(Kind kind) const {
  if (stack_.empty() || at(stack_.back()).kind != kind) damaged();
  return at(stack_.back());
}

/// What stands above the last mark, which goes too.
std::vector<PickleMachine::Ref> PickleMachine::pop_to_mark() {
  const auto mark = std::find(stack_.rbegin(), stack_.rend(), mark_);
  if (mark == stack_.rend()) damaged();
  std::vector<Ref> items(mark.base(), stack_.end());
  for (const Ref item : items) open_ -= opens(item);
  --open_;
  stack_.erase(mark.base() - 1, stack_.end());
  return items;
}

std::uint16_t PickleMachine::levels_over(const std::vector<Ref>& items) const {
  std::uint16_t levels = 0;
  for (const Ref item : items) levels = std::max(levels, at(item).levels);
  return static_cast<std::uint16_t>(levels + 1);
}

void PickleMachine::push_items(Kind kind, std::vector<Ref> items) {
  if (kind == Kind::dict && items.size() % 2 != 0) damaged();
  const std::uint16_t levels = levels_over(items);
  push(make({.kind = kind, .levels = levels, .items = std::move(items)}));
}

void PickleMachine::push_tuple(std::size_t size) {
  std::vector<Ref> items(size);
  for (std::size_t i = size; i-- > 0;) items[i] = pop();
  push_items(Kind::tuple, std::move(items));
}

void PickleMachine::count_items(std::size_t items) {
  listed_ += items;
  if (listed_ > kMostValues) too_many();
}

/// To the list or dict on top. An object keeps nothing of it.
void PickleMachine::append(Kind kind, const std::vector<Ref>& items) {
  count_items(items.size());
  if (purpose_.objects && !stack_.empty() && at(stack_.back()).kind == Kind::object) return;
  (void)top(kind);
  if (kind == Kind::dict && items.size() % 2 != 0) damaged();
  Value& list = values_[stack_.back()];
  list.levels = std::max(list.levels, levels_over(items));
  if (list.levels > purpose_.most_levels) too_deep();
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void PickleMachine::push_integer(std::int64_t value) {
  push(make({.kind = Kind::integer, .number = value}));
}

void PickleMachine::push_bytes(Kind kind, std::uint64_t count) {
  push(make({.kind = kind, .bytes = take(count)}));
}

void PickleMachine::put(std::uint64_t key) {
  if (stack_.empty()) damaged();
  memo_[key] = stack_.back();
}

void PickleMachine::get(std::uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) damaged();
  push(found->second);
}

void PickleMachine::step(std::uint8_t opcode) {
  switch (opcode) {
    case kProto:
      return protocol(number(1));
    case 0x95:
      if (const std::uint64_t bytes = number(8); bytes > file_.size() - at_) too_few(bytes);
      return;
    case '(':
      return push(mark_);
    case ']':
      return push(make({.kind = Kind::list, .levels = 1}));
    case 'a': {
      const Ref item = pop();
      return append(Kind::list, {item});
    }
    case 'e': {
      const std::vector<Ref> items = pop_to_mark();
      return append(Kind::list, items);
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
    case 0x93:
      return name_on_stack();
    case 'R':
      return reduce();
    case 'b':
      return take_on();
    default:
      if (purpose_.objects && step_with_objects(opcode)) return;
      fail("the pickle has the opcode " + std::to_string(opcode) + " at byte " +
           std::to_string(at_ - 1) + ", which no " + purpose_.things + " need; it is not run");
  }
}

/// False: there is no such opcode.
bool PickleMachine::step_with_objects(std::uint8_t opcode) {
  switch (opcode) {
    case '}':
      return push(make({.kind = Kind::dict, .levels = 1})), true;
    case 's': {
      const Ref value = pop(), key = pop();
      return append(Kind::dict, {key, value}), true;
    }
    case 'u': {
      const std::vector<Ref> items = pop_to_mark();
      return append(Kind::dict, items), true;
    }
    case 'd':
      return push_items(Kind::dict, pop_to_mark()), true;
    case 0x8F:
      return push(make({.kind = Kind::list, .levels = 1})), true;
    case 0x90: {
      const std::vector<Ref> items = pop_to_mark();
      return append(Kind::list, items), true;
    }
    case 0x91:
      return push_items(Kind::list, pop_to_mark()), true;
    case 0x8A:
      return long_integer(number(1)), true;
    case 0x8B:
      return long_integer(number(4)), true;
    case 'G': {
      const std::uint64_t bits = __builtin_bswap64(number(8));
      return push(make({.kind = Kind::real, .number = std::bit_cast<std::int64_t>(bits)})), true;
    }
    case 0x81:
      return reduce(), true;
    case 0x92:
      (void)pop();  // arguments by name
      return reduce(), true;
    case 'Q': {
      const Ref identifier = pop();
      return push(outside(at(identifier))), true;
    }
    case '0':
      return (void)pop(), true;
    case '1':
      return (void)pop_to_mark(), true;
    default:
      return false;
  }
}

void PickleMachine::protocol(std::uint64_t version) const {
  constexpr std::uint64_t kFirst = 2, kLast = 5;
  if (version >= kFirst && version <= kLast) return;
  fail("is a pickle of protocol " + std::to_string(version) +
       ", and 2 to 5 are known; write it with one of these");
}

void PickleMachine::integer_in_text() {
  const std::string_view digits = line();
  if (digits == "00" || digits == "01") return push(truths_[digits == "01" ? 1 : 0]);
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) damaged();
  push_integer(value);
}

/// In two's complement, little-endian. One that no 64 bits hold is an object.
void PickleMachine::long_integer(std::uint64_t bytes) {
  const ByteView digits = take(bytes);
  std::int64_t value = 0;
  if (bytes > sizeof value) return push(make({.kind = Kind::object}));
  if (bytes > 0) {
    if (digits.back() >> 7 != 0) value = -1;
    std::memcpy(&value, digits.data(), bytes);
  }
  push_integer(value);
}

void PickleMachine::name(std::string_view module, std::string_view of_module) {
  const std::optional<std::uint8_t> type = type_of(module, of_module);
  if (!type) {
    constexpr std::size_t kMost = 60;
    const std::string full =
        std::string(module.substr(0, kMost)) + "." + std::string(of_module.substr(0, kMost));
    fail("the pickle names " + on_one_line(full) + ", which no " + purpose_.things +
         " need; it is not called, and the file is not read further" + purpose_.instead);
  }
  push(make({.kind = Kind::name, .type = *type}));
}

void PickleMachine::name_on_stack() {
  const std::string_view of_module = as_text(top(Kind::text).bytes);
  (void)pop();
  const std::string_view module = as_text(top(Kind::text).bytes);
  (void)pop();
  name(module, of_module);
}

const PickleMachine::Value& PickleMachine::argument(const Value& arguments, std::size_t i,
                                                    Kind kind) const {
  if (i >= arguments.items.size() || at(arguments.items[i]).kind != kind) damaged();
  return at(arguments.items[i]);
}

std::string_view PickleMachine::word(const Value& arguments, std::size_t i) const {
  if (i >= arguments.items.size()) damaged();
  const Value& value = at(arguments.items[i]);
  if (value.kind != Kind::text && value.kind != Kind::bytes) damaged();
  return as_text(value.bytes);
}

void PickleMachine::reduce() {
  const Ref arguments = pop();
  if (at(arguments).kind != Kind::tuple) damaged();
  const Ref function = pop();
  if (at(function).kind != Kind::name) damaged();
  push(call(at(function).type, at(arguments)));
}

void PickleMachine::take_on() {
  const Ref state = pop();
  if (stack_.empty()) damaged();
  build(values_[stack_.back()], at(state));
}

}  // namespace ringlet
