// Names where there is little room: of a long one its begin and its end, and of several that would
// look alike what tells them apart.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ringlet::app::report {

/// How wide a text is beside letters of one width: letters as those of Chinese and Korean, and
/// emoji, count as two.
std::size_t columns_of(const std::string& text);

/// The width that it has at most in the fonts that browsers have, in a drawing's units, with the
/// larger letters that a telephone gets (page.css).
double width_of(const std::string& text);

/// A name of at most so many columns: of a longer one, its begin and its end.
std::string shortened(const std::string& name, std::size_t columns);

/// The same of each. Names that would come out the same lose what they begin and end with alike.
std::vector<std::string> shortened(const std::vector<std::string>& names, std::size_t columns);

}  // namespace ringlet::app::report
