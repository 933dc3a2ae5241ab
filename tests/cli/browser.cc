#include "tests/cli/browser.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "tests/support/files.h"

namespace ringlet::testing {

namespace {

constexpr const char* kCollectErrors =
    "<script>addEventListener('error', (event) => {"
    "  const root = document.documentElement.dataset;"
    "  root.errors = (root.errors || '') + event.message + ';';"
    "});</script>";

std::string with_probe(std::string html, const std::string& probe) {
  html.insert(html.find("<head>") + 6, kCollectErrors);
  html.insert(html.rfind("</body>"), "<script>" + probe + "</script>");
  return html;
}

/// What a shell's command prints, and whether it ended well.
bool run_shell(const std::string& command, std::string& output) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return false;
  std::array<char, 65536> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Opened open_in_browser(const std::filesystem::path& page, const std::string& probe, int width) {
  const TemporaryDirectory folder;
  write_file(folder / "page.html", with_probe(read_file(page), probe));
  Opened opened;
  std::string program;
  run_shell("command -v chromium || command -v chromium-browser || command -v google-chrome",
            program);
  program = program.substr(0, program.find('\n'));
  if (program.empty()) {
    opened.why = "Chromium is not installed (scripts/setup --dev)";
    return opened;
  }
  // Its profile goes with the folder, and no request can leave the machine.
  const std::string command =
      "timeout 60 " + program + " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage" +
      " --proxy-server=127.0.0.1:9 --user-data-dir=" + (folder / "profile").string() +
      " --window-size=" + std::to_string(width) +
      ",900 --virtual-time-budget=3000 --dump-dom file://" + (folder / "page.html").string() +
      " 2>/dev/null </dev/null";
  opened.could = run_shell(command, opened.dom) && opened.dom.find("</html>") != std::string::npos;
  if (!opened.could) opened.why = program + " does not start here";
  return opened;
}

}  // namespace ringlet::testing
