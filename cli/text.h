// Formatting of the commands' output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longwire::cli {

std::string BytesText(uint64_t bytes);          // "1.5 GiB"
std::string SecondsText(double seconds);        // "3.2 s", "2 h 05 min"
std::string VersionText(int cuda_version);      // 13000 -> "13.0"
std::string JsonString(std::string_view text);  // quoted and escaped
// Without control characters, which a peer could use to write on the terminal.
std::string Printable(std::string_view text);

}  // namespace longwire::cli
