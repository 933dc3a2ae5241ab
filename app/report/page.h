// A page that stands alone: style and script are in it, and it loads nothing from a network. It is
// legible on a telephone, in the dark and on paper. Without its script it is complete; the script
// adds read-outs to the plots (svg_plot.h).
#pragma once

#include <string>

#include "app/report/html.h"

namespace ringlet::app::report {

std::string page_of(const std::string& title, const Html& body);

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace ringlet::app::report
