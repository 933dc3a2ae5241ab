#include "app/report/page.h"

namespace ringlet::app::report {

std::string page_of(const std::string& title, const Html& body) {
  return markup(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "<div id=\"readout\" hidden></div>\n<script>{}</script>\n</body>\n</html>\n",
      title, Html::trusted(kPageStyle), body, Html::trusted(kPageScript));
}

}  // namespace ringlet::app::report
