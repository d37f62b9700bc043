// Warns before a program starts if it will not load Longwire's libcuda.so.1.
#pragma once

#include <string>

namespace longwire::cli {

// The beginning of the line, by which longwire doctor --explain recognizes it.
inline constexpr const char* kNotice = "note: ";

// One sentence with a remedy; empty when no problem is known. The program is looked up as the shell
// does. `library`: the folder of our library.
std::string NoticeAbout(const std::string& program, const std::string& library);

}  // namespace longwire::cli
