#include "app/report/html.h"

#include <cstddef>
#include <cstdint>
#include <utility>

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

Html escaped(std::string_view text) { return Html::trusted(with_entities(on_one_line(text))); }

Html escaped_lines(std::string_view text) { return Html::trusted(with_entities(printable(text))); }

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

}  // namespace ringlet::app::report
