// Text for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace longwire::cli {

// Printable, and without what has a meaning there.
std::string HtmlText(std::string_view text);

}  // namespace longwire::cli
