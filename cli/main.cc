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

namespace {

constexpr const char* kHelp =
    R"(longwire: CUDA devices of another host for programs on this one.

  longwire run --server HOST:PORT [--] PROGRAM [ARGUMENTS...]
                    run PROGRAM with the server's devices
  longwire doctor [--server HOST:PORT]
                    find out what works and what does not, with a remedy for each problem
  longwire status [--server HOST:PORT] [--json]
                    the server's devices, memory and sessions
  longwire top [--server HOST:PORT] [--once [--json]]
                    the same and what runs there now, live
  longwire usage [--since WHEN] [--until WHEN] [--by tenant|identity|program] [--json]
                    what sessions of this host's longwired have used
  longwire memory [--server HOST:PORT] [--timeline FILE --seconds N]
                    which session has which device memory, now or over time
  longwire trace --calls | --allocations | --summary [--] PROGRAM [ARGUMENTS...]
                    as run, and traces what PROGRAM does
  longwire invite NAME
                    invites a user to this server; prints the line for longwire join
  longwire join LINE
                    gets this user's certificate with such a line, and opens a session
  longwire cert init | server | client | renew | revoke | show
                    certificates by which servers and users know each other
  longwire config check|show|default [FILE]
                    longwired's configuration file: what is wrong, what it means, a first one
  longwire admin reload | sessions | kill | evict | drain | cordon
                    for operators: settings, and who may stay
  longwire bench [--server HOST:PORT] [--json]
                    what the server costs beside a GPU of this host
  longwire COMMAND --help
  longwire --version

HOST:PORT may be a comma list, and for run, trace, doctor, admin and bench unix:PATH, the local
socket of a server on this host. Without --server the environment variable LONGWIRE_SERVER is used;
status, top, memory and admin then ask longwired of this host.
)";

struct Command {
  std::string_view name;
  int (*run)(const longwire::cli::Arguments& arguments);
};

constexpr Command kCommands[] = {
    {"admin", longwire::cli::Admin},   {"bench", longwire::cli::Bench},
    {"cert", longwire::cli::Cert},     {"config", longwire::cli::Config},
    {"doctor", longwire::cli::Doctor}, {"invite", longwire::cli::Invite},
    {"join", longwire::cli::Join},     {"memory", longwire::cli::Memory},
    {"run", longwire::cli::Run},       {"status", longwire::cli::Status},
    {"top", longwire::cli::Top},       {"trace", longwire::cli::Trace},
    {"usage", longwire::cli::Usage},
};

// What was printed into a full file system is not a success.
int Checked(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (errno == EPIPE) return status;  // who reads it has seen enough
  std::fprintf(stderr, "longwire: what it prints cannot be written: %s\n",
               longwire::base::Reason(errno).c_str());
  return status == 0 ? 1 : status;
}

}  // namespace

int main(int count, char** arguments) {
  longwire::wire::OpenStandardDescriptors();
  longwire::wire::SetDisabled(longwire::wire::ClientSettings().Value("LONGWIRE_DISABLE"));
  std::string_view name = count > 1 ? arguments[1] : "--help";
  for (const Command& command : kCommands) {
    if (command.name == name) return Checked(command.run({arguments + 2, arguments + count}));
  }
  if (name == longwire::cli::kTriedProgram) {
    return longwire::cli::TriedProgram({arguments + 2, arguments + count});
  }
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(kHelp, stdout);
    return count > 1 ? 0 : longwire::cli::kUsageStatus;
  }
  if (name == "--version") {
    std::puts("longwire " LONGWIRE_VERSION);
    return 0;
  }
  std::fprintf(stderr, "longwire: there is no command '%s'; see longwire --help\n", arguments[1]);
  return longwire::cli::kUsageStatus;
}
