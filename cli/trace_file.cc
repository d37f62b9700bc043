#include "cli/trace_file.h"

#include <fcntl.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/reason.h"
#include "cli/program_environment.h"
#include "wire/descriptors.h"

namespace longwire::cli {

std::string TraceInto(const std::string& path) {
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY);
  if (!file.valid()) {
    return path + ": " + base::Reason(errno) + "; name a file in a folder where you may write";
  }
  // Its name counts from every directory.
  char resolved[PATH_MAX];
  const bool found = realpath(path.c_str(), resolved) != nullptr;
  setenv("LONGWIRE_TRACE_FILE", found ? resolved : path.c_str(), 1);
  // NVTX's header asks this library for somebody who wants the program's ranges.
  const std::string library = LibraryFolder() + "/libcuda.so.1";
  setenv("NVTX_INJECTION64_PATH", library.c_str(), 0);
  return {};
}

}  // namespace longwire::cli
