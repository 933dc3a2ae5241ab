#include "app/report/html.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "app/report/page_texts.h"
#include "base/one_line.h"

namespace ringlet::app::report {

namespace {

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string with_entities(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const std::string_view word = entity(c);
    result.append(word.empty() ? std::string_view(&c, 1) : word);
  }
  return result;
}

}  // namespace

std::string detail::number_text(double value, std::string_view spec) {
  if (!std::isfinite(value)) return "&ndash;";
  return fmt::vformat(fmt::format("{{:{}}}", spec), fmt::make_format_args(value));
}

Html escaped(std::string_view text) { return Html::trusted(with_entities(on_one_line(text))); }

Html escaped_lines(std::string_view text) { return Html::trusted(with_entities(printable(text))); }

Html fact(std::string_view name, const Html& value) {
  return markup("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

Html list_of(const Pairs& pairs) {
  Html html = "<dl class=\"pairs\">\n";
  for (const auto& [name, value] : pairs) {
    if (!value.empty()) html += markup("<dt>{}</dt><dd>{}</dd>\n", name, value);
  }
  return html + "</dl>\n";
}

Html folded(std::string_view title, const Html& html) {
  return markup("<details><summary>{}</summary>\n{}</details>\n", title, html);
}

Html data_uri(std::string_view type, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string uri = "data:";
  uri.append(type).append(";base64,");
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      uri += k <= count ? kDigits[three >> (6 * (3 - k)) & 63] : '=';
    }
  }
  return Html::trusted(std::move(uri));
}

std::string page_of(const std::string& title, const Html& body, const PageExtras& extras) {
  return markup(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "<div id=\"readout\" hidden></div>\n<script>{}{}</script>\n</body>\n</html>\n",
      title, Html::trusted(kPageStyle), Html::trusted(extras.style), body,
      Html::trusted(kPageScript), Html::trusted(extras.script));
}

}  // namespace ringlet::app::report
