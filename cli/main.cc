// longwire: run programs on remote CUDA devices, see what is wrong, see who uses them.
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/reason.h"
#include "cli/commands.h"
#include "cli/tried_program.h"
#include "wire/client_settings.h"
#include "wire/descriptors.h"
#include "wire/disabled_names.h"

namespace longwire::cli {
namespace {

constexpr void (*kCommands[])(CommandLine&) = {
    AddRun,   AddDoctor, AddStatus, AddTop,   AddAdvise,  AddMemory,    AddUsage,
    AddTrace, AddProbe,  AddInvite, AddJoin,  AddCert,    AddConfig,    AddRules,
    AddAdmin, AddPolicy, AddPool,   AddBench, AddVersion, AddCompletion};

constexpr const char* kMainFooter =
    R"(HOST:PORT may be a list with commas between, and for run, trace, doctor, admin and bench
unix:PATH, the local socket of a server on this host. Without --server the environment variable
LONGWIRE_SERVER is used, and the file client.conf; status, top, memory, advise and admin then ask
longwired of this host.

Where a command does not say otherwise, the exit status is 0 if it is done, 1 if not, 2 if it
was called wrongly.)";

// What was printed into a full file system is not a success.
int Checked(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (errno == EPIPE) return status;  // who reads it has seen enough
  std::fprintf(stderr, "longwire: what it prints cannot be written: %s\n",
               base::Reason(errno).c_str());
  return status == 0 ? 1 : status;
}

int RunWords(Arguments words) {
  wire::SetDisabled(wire::ClientSettings().Value("LONGWIRE_DISABLE"));
  if (!words.empty() && words[0] == kTriedProgram) {
    return TriedProgram({words.begin() + 1, words.end()});
  }
  if (!words.empty() && words[0] == "help") words[0] = "--help";
  CommandLine line;
  for (auto add : kCommands) add(line);
  line.Close(kMainFooter);
  return Checked(line.Run(words));
}

}  // namespace
}  // namespace longwire::cli

int main(int count, char** arguments) {
  longwire::wire::OpenStandardDescriptors();
  return longwire::cli::RunWords({arguments + 1, arguments + count});
}
