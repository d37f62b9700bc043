// The files of the page, which are parts of the program.
#pragma once

#include <span>
#include <string_view>

namespace longwire::web {

struct Asset {
  std::string_view path;  // "/page.js"
  std::string_view type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;
};

std::span<const Asset> Assets();

}  // namespace longwire::web
