// The style and the script that every page holds.
#pragma once

namespace ringlet::app::report {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace ringlet::app::report
