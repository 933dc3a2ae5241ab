// PickleMachine: runs a Python pickle, and calls nothing.
//
// A pickle is a program for a machine with a stack. This machine's values are of a few kinds: none,
// bool, int, float, text, bytes, list, tuple, dict, names, and objects that are what a reader makes
// of them. A name that the program gives is a number of the reader's; where the program calls one,
// the reader is asked for an object, and there is no other way to do anything. What is not on the
// list is an error:
//
//   protocols  2 to 5
//   opcodes    PROTO FRAME STOP MARK, EMPTY_LIST APPEND APPENDS LIST, EMPTY_TUPLE TUPLE TUPLE1
//              TUPLE2 TUPLE3, NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2,
//              SHORT_BINSTRING BINSTRING SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8, BINUNICODE
//              SHORT_BINUNICODE, BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET, GLOBAL
//              STACK_GLOBAL REDUCE BUILD
//   and where the reader takes objects: EMPTY_DICT SETITEM SETITEMS DICT, EMPTY_SET ADDITEMS
//              FROZENSET (as lists), LONG1 LONG4 BINFLOAT, NEWOBJ NEWOBJ_EX, BINPERSID, POP
//              POP_MARK
//   limits     the reader's number of levels, 2^22 values, and no more bytes than the file has
//
// Source: pickletools of CPython 3.13.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ringlet {

/// Whether bytes begin as a pickle of a protocol that says so: 2 or later.
bool begins_pickle(std::span<const std::uint8_t> file);

class PickleMachine {
 public:
  using ByteView = std::span<const std::uint8_t>;
  using Ref = std::uint32_t;

  enum class Kind : std::uint8_t {
    mark,
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    list,
    tuple,
    dict,
    name,
    object
  };

  struct Value {
    Kind kind = Kind::none;
    std::uint8_t type = 0;    ///< the reader's: what a name stands for, what an object is
    std::uint8_t detail = 0;  ///< the reader's, of an object
    std::uint16_t levels = 0;
    std::int64_t number = 0;   ///< of a bool or an int; of an object the reader's
    ByteView bytes{};          ///< of text and bytes; of an object the reader's
    std::vector<Ref> items{};  ///< of a dict: a key, its value, the next key
  };

  /// What is read, in the words of messages, and what it may ask for.
  struct Purpose {
    const char* things = "";   ///< "pairs"
    const char* instead = "";  ///< what to do where a name is refused: "; save these"
    std::uint16_t most_levels = 0;
    bool objects = false;
    bool more_behind = false;  ///< bytes behind the pickle's end are somebody else's
  };

  /// `file` has to outlive the machine.
  PickleMachine(ByteView file, Purpose purpose);
  virtual ~PickleMachine() = default;
  PickleMachine(const PickleMachine&) = delete;
  PickleMachine& operator=(const PickleMachine&) = delete;

  /// Runs the program. What it leaves.
  Ref run();
  const Value& at(Ref ref) const { return values_[ref]; }
  /// Bytes of the pickle, once it has run.
  std::uint64_t size() const { return at_; }
  static std::string_view as_text(ByteView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Throws the reader's error.
  [[noreturn]] void fail(const std::string& what) const;

 protected:
  // What a reader says.
  /// Throws its error, with the file's name before it.
  virtual void throw_error(const std::string& what) const = 0;
  /// What a name stands for; nothing: it is refused.
  virtual std::optional<std::uint8_t> type_of(std::string_view module, std::string_view name) = 0;
  /// The name `function` is called with a tuple of arguments.
  virtual Ref call(std::uint8_t function, const Value& arguments) = 0;
  /// An object takes on a state.
  virtual void build(Value& object, const Value& state) = 0;
  /// What lies outside of the pickle, by its identifier.
  virtual Ref outside(const Value& identifier);

  // What it makes its values with.
  [[noreturn]] void damaged() const;
  Ref make(Value value);
  Ref truth(bool is) const { return truths_[is ? 1 : 0]; }
  Ref none() const { return none_; }
  /// To be called before so many items are taken into a value: the same ones may be over and over.
  void count_items(std::size_t items);
  /// An argument of that kind; damaged where there is none.
  const Value& argument(const Value& arguments, std::size_t i, Kind kind) const;
  /// Python 2 has a str as bytes.
  std::string_view word(const Value& arguments, std::size_t i) const;

 private:
  ByteView take(std::uint64_t count);
  std::uint64_t number(std::size_t bytes);
  std::string_view line();
  [[noreturn]] void too_deep() const;
  [[noreturn]] void too_many() const;
  [[noreturn]] void too_few(std::uint64_t claimed) const;
  std::uint64_t opens(Ref ref) const;
  void push(Ref ref);
  Ref pop();
  const Value& top(Kind kind) const;
  std::vector<Ref> pop_to_mark();
  std::uint16_t levels_over(const std::vector<Ref>& items) const;
  void push_items(Kind kind, std::vector<Ref> items);
  void push_tuple(std::size_t size);
  void append(Kind kind, const std::vector<Ref>& items);
  void push_integer(std::int64_t value);
  void push_bytes(Kind kind, std::uint64_t count);
  void put(std::uint64_t key);
  void get(std::uint64_t key);
  void step(std::uint8_t opcode);
  bool step_with_objects(std::uint8_t opcode);
  void protocol(std::uint64_t version) const;
  void integer_in_text();
  void long_integer(std::uint64_t bytes);
  void name(std::string_view module, std::string_view of_module);
  void name_on_stack();
  void reduce();
  void take_on();

  ByteView file_;
  Purpose purpose_;
  std::uint64_t at_ = 0;
  std::deque<Value> values_;  // which stay where they are
  std::vector<Ref> stack_;
  std::unordered_map<std::uint64_t, Ref> memo_;
  std::uint64_t listed_ = 0, open_ = 0;
  Ref none_ = 0, empty_ = 0, mark_ = 0;
  std::array<Ref, 2> truths_{};
};

}  // namespace ringlet
