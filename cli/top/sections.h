// The picture's tables as lines of text, for a terminal and for --once.
#pragma once

#include <string>
#include <vector>

#include "cli/top/picture.h"

namespace longwire::cli::top {

// In at most `width` columns; 0: as many as needed. The first line has the titles.
std::vector<std::string> DeviceLines(const Picture& picture, int width);
std::vector<std::string> TenantLines(const Picture& picture, int width);
// `sorted` is marked in its title.
std::vector<std::string> SessionLines(const Picture& picture, int width, Column sorted,
                                      bool reversed);
// What server it is, and how it is. The second is empty if all is well.
std::string HeadLine(const Picture& picture);
std::string AlarmLine(const Picture& picture);

// Everything as text.
std::string PictureText(Picture picture);
// One JSON object; what is not known is null.
std::string PictureJson(const Picture& picture);

}  // namespace longwire::cli::top
