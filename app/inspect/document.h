// What `ringlet inspect` found in one file or folder: facts, tables, pictures and warnings. How it
// is shown comes later: one printer is for people, one for programs. The formats know neither.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace ringlet::app::inspect {

/// How people write a number. Programs get it bare.
enum class Form : std::uint8_t {
  plain,         ///< 60,000; 0.286041
  bytes,         ///< 504 KiB (516,272 bytes)
  share,         ///< 12.5 %, of 0.125
  microseconds,  ///< 1.250 ms, of 1250
  digits,        ///< 1234567890, an identifier
};

/// One value; std::monostate where there is none (null in JSON).
struct Value {
  using Sizes = std::vector<std::int64_t>;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Sizes> data;
  Form form = Form::plain;

  Value() = default;
  Value(bool value) : data(value) {}                    // NOLINT: facts read as written
  Value(int value) : data(std::int64_t{value}) {}       // NOLINT
  Value(std::int64_t value, Form how = Form::plain)     // NOLINT
      : data(value), form(how) {}                       //
  Value(double value, Form how = Form::plain)           // NOLINT
      : data(value), form(how) {}                       //
  Value(const char* text) : data(std::string(text)) {}  // NOLINT
  Value(std::string text) : data(std::move(text)) {}    // NOLINT
  Value(Sizes sizes) : data(std::move(sizes)) {}        // NOLINT
};

inline Value bytes_value(std::uint64_t bytes) {
  return {static_cast<std::int64_t>(bytes), Form::bytes};
}

/// "data hash": in JSON "data_hash".
struct Fact {
  std::string name;
  Value value;
};

struct Table {
  std::string name;  ///< of the list in JSON
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

/// Pictures side by side, for a page.
struct Thumbnail {
  struct Picture {
    int width = 0, height = 0;
    std::vector<std::uint8_t> pixels{};  ///< [height, width, 3]
  };
  std::string section;
  std::string caption;
  std::vector<Picture> pictures;
};

struct Document {
  std::string path;
  std::string format;  ///< "safetensors"
  std::vector<Fact> facts;
  std::vector<Table> tables;
  std::vector<std::string> pictures{};  ///< for people only; of several lines each
  std::vector<std::string> warnings{};  ///< what is odd about a file that is whole
  std::vector<Thumbnail> thumbnails{};  ///< those of a section follow each other
};

/// A value as people write it.
std::string in_words(const Value& value);

/// For a terminal, at the width that it needs; ends with a line feed.
std::string to_text(const Document& document);

/// {"path", "format", facts.., tables as lists of objects.., "warnings"}. NaN and infinity are
/// null.
nlohmann::ordered_json to_json(const Document& document);

}  // namespace ringlet::app::inspect
