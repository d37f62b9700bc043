#include "web/assets.h"

// The assembler puts a file of page/ into the program as it is (CMakeLists.txt names its folder).
#define LONGWIRE_ASSET(name, file)                     \
  __asm__(                                             \
      ".pushsection .rodata\n"                         \
      "longwire_asset_" #name ":\n"                    \
      ".incbin \"" LONGWIRE_PAGE_FOLDER "/" file "\"\n" \
      "longwire_asset_" #name "_end:\n"                \
      ".byte 0\n"                                      \
      ".popsection\n");                                \
  extern "C" const char longwire_asset_##name[];       \
  extern "C" const char longwire_asset_##name##_end[]

LONGWIRE_ASSET(index, "index.html");
LONGWIRE_ASSET(style, "style.css");
LONGWIRE_ASSET(icon, "icon.svg");
LONGWIRE_ASSET(page, "page.js");
LONGWIRE_ASSET(tables, "tables.js");
LONGWIRE_ASSET(sections, "sections.js");
LONGWIRE_ASSET(memory, "memory.js");
LONGWIRE_ASSET(chart, "chart.js");
LONGWIRE_ASSET(format, "format.js");

#undef LONGWIRE_ASSET

namespace longwire::web {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kCss = "text/css; charset=utf-8";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::span<const Asset> Assets() {
#define LONGWIRE_ASSET(name) Between(longwire_asset_##name, longwire_asset_##name##_end)
  static const Asset assets[] = {
      {"/", kHtml, LONGWIRE_ASSET(index)},
      {"/style.css", kCss, LONGWIRE_ASSET(style)},
      {"/icon.svg", "image/svg+xml", LONGWIRE_ASSET(icon)},
      {"/page.js", kScript, LONGWIRE_ASSET(page)},
      {"/tables.js", kScript, LONGWIRE_ASSET(tables)},
      {"/sections.js", kScript, LONGWIRE_ASSET(sections)},
      {"/memory.js", kScript, LONGWIRE_ASSET(memory)},
      {"/chart.js", kScript, LONGWIRE_ASSET(chart)},
      {"/format.js", kScript, LONGWIRE_ASSET(format)},
  };
#undef LONGWIRE_ASSET
  return assets;
}

}  // namespace longwire::web
