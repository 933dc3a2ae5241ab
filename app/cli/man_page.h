// The manual page, ringlet(1), from the commands and flags of a CLI::App, in the macros of man(7).
//
//   ringlet help --man | man -l -
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace ringlet::app {

std::string man_page(const CLI::App& program);

}  // namespace ringlet::app
