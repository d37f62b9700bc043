// What a program is given so that it finds Longwire's library and the server: the same by longwire
// run and by the program that longwire doctor tries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace longwire::cli {

// Where our libcuda.so.1 lies, "lib/longwire" beside "bin", with ".." resolved; empty when it is
// not there.
std::string LibraryFolder();

// The server as the program needs it, which may change its directory before it connects.
std::string FromEverywhere(const std::string& server);

// Names and values to set; what is set already and wins is not among them.
std::vector<std::pair<std::string, std::string>> ProgramVariables(const std::string& server,
                                                                  const std::string& library);

}  // namespace longwire::cli
