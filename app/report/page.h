// A page that stands alone: style and script are in it, and it asks no network for anything. It is
// legible on a telephone, in the dark and on paper, and whole without its script, which adds
// read-outs to the plots (svg_plot.h).
#pragma once

#include <string>

namespace ringlet::app::report {

/// `title` is text, `body` HTML.
std::string page_of(const std::string& title, const std::string& body);

}  // namespace ringlet::app::report
