// The environment in which a program finds Longwire's library and the server. Used by longwire run
// and by longwire doctor's test program.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace longwire::cli {

// Where our libcuda.so.1 lies, "lib/longwire" beside "bin", with ".." resolved; empty when it is
// not there.
std::string LibraryFolder();

// The program will be traced into the file, which is empty then. The sentence that refuses one
// which cannot be written; empty if it can be.
std::string TraceInto(const std::string& path);

// The server's address with an absolute path: a program may change its directory before it
// connects.
std::string FromEverywhere(const std::string& server);

// Names and values to set, without variables that the user has set already.
std::vector<std::pair<std::string, std::string>> ProgramVariables(const std::string& server,
                                                                  const std::string& library);

}  // namespace longwire::cli
