// Pages opened in headless Chromium, where it is installed. A script at the page's end looks at it
// and writes into the document, which comes back as text.
#pragma once

#include <filesystem>
#include <string>

namespace ringlet::testing {

struct Opened {
  bool could = false;  ///< false: there is no Chromium here, or it does not start
  std::string why;     ///< it could not
  std::string dom;     ///< the document afterwards, errors of scripts in <html data-errors="...">
};

/// Opens a copy of `page`, in a window `width` wide, in whose end `probe` (JavaScript) runs.
Opened open_in_browser(const std::filesystem::path& page, const std::string& probe, int width);

}  // namespace ringlet::testing
