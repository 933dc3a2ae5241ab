#include "app/report/page.h"

#include <fmt/format.h>

#include "app/report/html.h"

namespace ringlet::app::report {

std::string page_of(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "<div id=\"readout\" hidden></div>\n<script>{}</script>\n</body>\n</html>\n",
      escaped(title), kPageStyle, body, kPageScript);
}

}  // namespace ringlet::app::report
