// HTML, as against text. A name, a number or a word of a file becomes HTML only in markup(), which
// escapes it. So no field can be forgotten:
//
//   markup("<td>{}</td><td>{:.2f}</td>", run.name, seconds)
//
//   text         escaped: between tags and in an attribute's quotes it is nothing but text
//   a number     as its format says; what is not finite is a dash, as text (a drawing has only
//                positions that are finite, see Axis::at())
//   Html         as it is
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringlet::app::report {

class Html {
 public:
  Html() = default;
  /// A literal of the program's own.
  template <std::size_t N>
  Html(const char (&literal)[N]) : text_(literal) {}  // NOLINT: a literal is used as what it is
  /// What is known to be HTML, not text.
  static Html trusted(std::string html) {
    Html result;
    result.text_ = std::move(html);
    return result;
  }

  const std::string& str() const { return text_; }
  operator const std::string&() const { return text_; }  // NOLINT: it is written to files
  bool empty() const { return text_.empty(); }
  Html& operator+=(const Html& more) {
    text_ += more.text_;
    return *this;
  }
  friend Html operator+(Html front, const Html& back) { return std::move(front += back); }

 private:
  std::string text_;
};

/// Text as it stands between tags or in an attribute's quotes, escaped as in a message
/// (base/one_line.h).
Html escaped(std::string_view text);

/// The same for text of several lines, at any length.
Html escaped_lines(std::string_view text);

namespace detail {

struct Number {
  double value;
};
/// As fmt's `spec` ("", ".2f") says; a dash where it is not finite.
std::string number_text(double value, std::string_view spec);

inline Html piece(std::string_view text) { return escaped(text); }
template <std::same_as<Html> T>
std::string_view piece(const T& html) {
  return html.str();
}
inline Number piece(std::floating_point auto value) { return {static_cast<double>(value)}; }
template <std::integral T>
T piece(T value) {
  return value;
}
void piece(char) = delete;  // it would not be escaped

template <class T>
using Piece = std::remove_cvref_t<decltype(piece(std::declval<const T&>()))>;

}  // namespace detail

/// The format, which is HTML, with the values in it.
template <class... Values>
Html markup(fmt::format_string<detail::Piece<Values>...> format, const Values&... values) {
  return Html::trusted(fmt::format(format, detail::piece(values)...));
}

/// Appends it.
template <class... Values>
void print(Html& html, fmt::format_string<detail::Piece<Values>...> format,
           const Values&... values) {
  html += markup(format, values...);
}

/// A line of a list of facts (<dl class="facts">), which a page begins with.
Html fact(std::string_view name, const Html& value);

/// Names and values as a list; what has no value is left out.
using Pairs = std::vector<std::pair<std::string, std::string>>;
Html list_of(const Pairs& pairs);

/// HTML behind a title, which opens and closes it.
Html folded(std::string_view title, const Html& html);

/// "data:TYPE;base64,...": the bytes inside the page.
Html data_uri(std::string_view type, std::string_view bytes);

/// What a page has behind the style and the script that all have.
struct PageExtras {
  const char* style = "";
  const char* script = "";
};

/// A page that stands alone: style and script are in it, and it loads nothing from a network. It is
/// legible on a telephone, in the dark and on paper. Without its script it is complete; the script
/// adds read-outs to the plots (svg_plot.h). A plot that another script has drawn anew gets the
/// event "redrawn".
std::string page_of(const std::string& title, const Html& body, const PageExtras& extras = {});

}  // namespace ringlet::app::report

// Neither calls fmt's own formatters nor format_to(), which the compiler would make in every file.
template <>
struct fmt::formatter<ringlet::app::report::Html> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(const ringlet::app::report::Html& html, fmt::format_context& context) const {
    return std::copy(html.str().begin(), html.str().end(), context.out());
  }
};

template <>
struct fmt::formatter<ringlet::app::report::detail::Number> : fmt::formatter<double> {
  constexpr auto parse(fmt::format_parse_context& context) {
    const auto begin = context.begin();
    const auto end = fmt::formatter<double>::parse(context);
    spec_ = {begin, static_cast<std::size_t>(end - begin)};
    // A width or precision that is an argument is unknown here. The compiler says so.
    if (spec_.find('{') != spec_.npos) throw fmt::format_error("name width and precision");
    return end;
  }
  auto format(ringlet::app::report::detail::Number number, fmt::format_context& context) const {
    const std::string text = ringlet::app::report::detail::number_text(number.value, spec_);
    return std::copy(text.begin(), text.end(), context.out());
  }

 private:
  std::string_view spec_;
};
