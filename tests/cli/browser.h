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

/// Leaves in <html data-names="..."> the names of lines that lie over each other, or go beyond the
/// page.
inline constexpr const char* kProbeNames = R"js(
  {
    const bad = [];
    for (const svg of document.querySelectorAll('figure.plot svg')) {
      const names = [...svg.querySelectorAll('text.name')];
      const boxes = names.map((name) => name.getBoundingClientRect());
      boxes.forEach((box, i) => {
        const over = boxes.some((other, k) => k < i && other.left < box.right && box.left < other.right &&
            Math.min(other.bottom, box.bottom) - Math.max(other.top, box.top) > 0.35 * box.height);
        if (over || box.right > innerWidth) bad.push(names[i].textContent);
      });
    }
    document.documentElement.dataset.names = bad.join(',');
  }
)js";

/// Opens a copy of `page`, in a window `width` wide, in whose end `probe` (JavaScript) runs.
Opened open_in_browser(const std::filesystem::path& page, const std::string& probe, int width);

}  // namespace ringlet::testing
