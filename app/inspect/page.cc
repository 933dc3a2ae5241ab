#include "app/inspect/page.h"

#include "app/report/html.h"
#include "app/report/image_uri.h"
#include "base/one_line.h"
#include "train/recipe/version.h"

namespace ringlet::app::inspect {

namespace {

using report::Html;
using report::markup;

bool is_word(const Value& value) {
  return std::holds_alternative<std::string>(value.data) ||
         std::holds_alternative<Value::Sizes>(value.data);
}

/// A share has a bar beside it, as long as it is large.
Html cell_of(const Value& value) {
  if (is_word(value)) return markup("<td class=\"text\">{}</td>", in_words(value));
  const auto* number = std::get_if<double>(&value.data);
  if (number == nullptr || value.form != Form::share) return markup("<td>{}</td>", in_words(value));
  constexpr double kPixels = 240;
  return markup(
      "<td>{}</td><td class=\"track\"><i class=\"bar\" style=\"width:{:.0f}px\"></i></td>",
      in_words(value), kPixels * *number);
}

Html html_of(const Table& table) {
  Html html =
      markup("<h2>{}</h2>\n<div class=\"scroll\"><table class=\"wide\"><thead><tr>", table.name);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Value& first = table.rows[0][c];
    html += is_word(first) ? markup("<th class=\"text\">{}</th>", table.columns[c])
                           : markup("<th>{}</th>", table.columns[c]);
    if (first.form == Form::share) html += "<th class=\"track\"></th>";
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const Value& value : row) html += cell_of(value);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

Html figure_of(const Thumbnail& shown) {
  Html html = "<figure><div class=\"two\">";
  for (const Thumbnail::Picture& picture : shown.pictures) {
    html += markup("<img alt=\"\" src=\"{}\">",
                   report::image_uri(picture.pixels, picture.width, picture.height, 3));
  }
  return html + markup("</div><figcaption>{}</figcaption></figure>\n", shown.caption);
}

Html thumbnails_of(const Document& document) {
  Html html;
  const std::string* section = nullptr;
  for (const Thumbnail& shown : document.thumbnails) {
    if (section == nullptr || *section != shown.section) {
      if (section != nullptr) html += "</div>\n";
      html += markup("<h3>{}</h3>\n<div class=\"mistakes{}\">\n", shown.section,
                     shown.pictures.size() > 1 ? Html(" pictured") : Html());
    }
    section = &shown.section;
    html += figure_of(shown);
  }
  return section == nullptr ? html : "<h2>looked at</h2>\n" + html + "</div>\n";
}

Html html_of(const Document& document) {
  Html html = markup("<header>\n<p class=\"kicker\">ringlet inspect</p>\n<h1>{}: {}</h1>\n",
                     on_one_line(document.path), document.format);
  for (const std::string& warning : document.warnings) {
    html += markup("<p class=\"warning\">{}</p>\n", on_one_line(warning));
  }
  report::Pairs facts;
  for (const Fact& fact : document.facts) facts.emplace_back(fact.name, in_words(fact.value));
  html += "</header>\n" + report::list_of(facts);
  for (const Table& table : document.tables) {
    if (!table.rows.empty()) html += html_of(table);
  }
  html += thumbnails_of(document);
  for (const std::string& picture : document.pictures) {
    html += markup("<pre>{}</pre>\n", report::escaped_lines(picture));
  }
  return html;
}

}  // namespace

std::string page_of(const std::vector<Document>& documents) {
  Html body;
  for (const Document& document : documents) body += html_of(document);
  body += markup("<footer>Made by ringlet {} inspect.</footer>\n", train::kVersion);
  const std::string title = documents.empty() ? "nothing" : on_one_line(documents[0].path);
  return report::page_of(title + " (Ringlet)", body);
}

}  // namespace ringlet::app::inspect
