// Documents as a page, in the style of the reports.
#pragma once

#include <string>
#include <vector>

#include "app/inspect/document.h"

namespace ringlet::app::inspect {

/// An HTML page that stands alone (app/report/html.h).
std::string page_of(const std::vector<Document>& documents);

}  // namespace ringlet::app::inspect
