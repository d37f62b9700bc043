// longwire-link: carries the rings of this user's programs to a Longwire server.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/reason.h"
#include "link/guard.h"
#include "link/local_socket.h"
#include "link/options.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/log.h"
#include "wire/client_settings.h"
#include "wire/descriptor_table.h"
#include "wire/descriptors.h"
#include "wire/disabled_names.h"
#include "wire/switches.h"

namespace longwire::link {
namespace {

// The program that started us must not be disturbed: its pipes would stay open with ours, and what
// it set for itself (signals, affinity, directory) is not meant for us. Returns where the program
// hears why the link does not serve.
wire::Descriptor LeaveProgram(const Options& options) {
  int keep = options.ready_descriptor;
  if (keep > 3) close_range(3, static_cast<unsigned>(keep) - 1, 0);
  close_range(keep >= 3 ? static_cast<unsigned>(keep) + 1 : 3, ~0u, 0);
  wire::Descriptor words = wire::Duplicate(STDERR_FILENO);
  wire::SilenceStandardDescriptors();
  if (!options.log_file.empty()) {
    wire::Descriptor log =
        wire::OpenFile(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log.valid()) dup2(log.get(), STDERR_FILENO);
  }
  [[maybe_unused]] int left = chdir("/");
  return words;
}

void ResetInherited() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Where a limit on files is left (client-shim/connect/link_limits.h), the program gets a
  // sentence.
  signal(SIGXFSZ, SIG_IGN);
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof(all));
  sched_setaffinity(0, sizeof(all), &all);  // the kernel cuts it to what is allowed
}

int Main(int count, char** arguments) {
  wire::OpenStandardDescriptors();
  base::SayWhyTerminated("longwire-link");
  Refusal refusal;
  std::optional<Options> options = ParseOptions(count, arguments, &refusal);
  if (!options) {
    std::fputs(refusal.text.c_str(), refusal.status == 0 ? stdout : stderr);
    return refusal.status;
  }
  ResetInherited();
  wire::Descriptor words;
  if (!options->foreground) {
    words = LeaveProgram(*options);
    StandGuard(options->successor, arguments);
  }
  wire::PrepareDescriptorTable();
  transport::SetLogLevel(options->log_level);
  // As the program that started us has it: programs with another list have another link.
  wire::SetDisabled(wire::ClientSettings().Value("LONGWIRE_DISABLE"));
  for (const std::string& sentence : wire::UnknownSwitches()) {
    transport::Log(transport::LogLevel::kWarning, sentence);
  }
  transport::PrepareProcess();

  LocalSocket socket(*options);
  LocalSocket::Opened opened = socket.Open();
  if (opened == LocalSocket::Opened::kFailed) {
    std::string sentence =
        "cannot open the local socket at " + options->socket + ": " + base::Reason(errno);
    transport::Log(transport::LogLevel::kError, sentence);
    if (words.valid()) dprintf(words.get(), "longwire-link: %s\n", sentence.c_str());
    return 1;
  }
  if (options->ready_descriptor >= 0) close(options->ready_descriptor);
  words.Reset();
  if (opened == LocalSocket::Opened::kOtherLink) return 0;
  socket.Serve();
  return 0;
}

}  // namespace
}  // namespace longwire::link

int main(int count, char** arguments) { return longwire::link::Main(count, arguments); }
