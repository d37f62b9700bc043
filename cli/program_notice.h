// Says before a program begins that it will not find Longwire's libcuda.so.1: afterwards there is
// nobody left who could.
#pragma once

#include <string>

namespace longwire::cli {

// How the line begins, so that longwire doctor --explain knows it.
inline constexpr const char* kNotice = "note: ";

// One sentence with what to do; empty when nothing is known against the program, which is found as
// the shell would. `library`: the folder of ours.
std::string NoticeAbout(const std::string& program, const std::string& library);

}  // namespace longwire::cli
