#include "cli/pictures/html_text.h"

#include "cli/text.h"

namespace longwire::cli {

std::string HtmlText(std::string_view text) {
  std::string safe;
  for (char c : Printable(text)) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace longwire::cli
