// JSON that comes from outside: files that a user names, or that were damaged on their way.
//
// The library would follow any depth of nesting, takes a zero byte for the end of the text, and
// quotes what it read in its messages. Here nesting has a limit, a zero byte is an error, and
// messages stay on one line. Nothing is read that nests deeper than 100.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/one_line.h"

namespace ringlet {

/// How deep objects and lists are nested in `text`: 2 for {"a":[1]}. Does not check the syntax.
int json_depth(std::string_view text);

/// Parses text of our own. Throws nlohmann::json::exception. The library's parser is a template,
/// which takes the compiler longer than most files that parse something: here it is made once.
nlohmann::json parse_json(std::string_view text);

/// The same of any text; nlohmann::json::value_t::discarded where it is not valid JSON, or nests
/// too deeply.
nlohmann::json json_or_discarded(std::string_view text);

/// Where a text stops being JSON.
struct JsonBreak {
  /// To the value that is none, from the outermost on: names of fields, and of a list the number of
  /// its entry, from 0. {"rows", "2", "median_us"}
  std::vector<std::string> way;
  std::string why;  ///< "parse error at line 3, column 15: ...", on one line
};
/// Nothing where json_or_discarded() would read the text. NaN and Infinity, as Python writes
/// them, are none, nor is a number beyond those of double.
std::optional<JsonBreak> where_json_breaks(std::string_view text);

/// Parses `text`, which `source` (a file, "m.jsonl: line 3") holds. Throws FileError
/// "SOURCE is not valid JSON (...)"; also where it nests deeper than `max_depth`.
nlohmann::json parse_json_text(const std::string& source, std::string_view text, int max_depth);

/// The object `document` as text for files with tables: a key a line, and of a list an entry a
/// line.
std::string row_a_line(const nlohmann::json& document);

}  // namespace ringlet
