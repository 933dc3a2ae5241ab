// Pieces of HTML.
#pragma once

#include <string>
#include <string_view>

namespace ringlet::app::report {

/// Text as it stands between tags or in an attribute's quotes, escaped as in a message
/// (train/files/one_line.h).
std::string escaped(std::string_view text);

/// The same for text of several lines, at any length.
std::string escaped_lines(std::string_view text);

/// HTML behind a title (text), which opens and closes it.
std::string folded(std::string_view title, std::string_view html);

/// "data:TYPE;base64,...": the bytes inside the page.
std::string data_uri(std::string_view type, std::string_view bytes);

}  // namespace ringlet::app::report
