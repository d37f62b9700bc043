#include "server/signer/options.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "link/certificates/invitation.h"
#include "server/daemon/settings/paths.h"
#include "wire/number.h"

namespace longwire::signer {
namespace {

constexpr const char* kHelp =
    R"(longwire-signer: signs the certificates of users that were invited, and renews them. It alone
reads the authority's key. It is off until an administrator starts it.

  longwire-signer [options]

  --dir D           folder of the authority, with ca.crt and ca.key (default
                    ~/.config/longwire/authority, as longwire cert init makes it)
  --listen ADDRESS[,ADDRESS...]
                    where clients connect (default 0.0.0.0:7413)
  --socket PATH     where longwire invite connects (a unix socket; default signer in
                    $LONGWIRE_RUNTIME_DIR, which is /run/longwire for root)
  --group NAME      whose members may invite; root and this process's user always may
  --state D         folder of what it keeps: invitations, and certificates in issued/ (default
                    $STATE_DIRECTORY, /var/lib/longwire-signer for root, else
                    ~/.local/state/longwire-signer)
  --revoked FILE    list of revoked certificates (a CRL, PEM), which are not renewed
  --days N          how long certificates are valid (default 365)
  --help, --version

The exit status is 1 if the authority cannot be read or it cannot listen, 2 if it was called
wrongly.
)";

constexpr int kDays = 365;
constexpr int kMaxDays = 36500;
constexpr size_t kMaxListen = 16;

enum Option { kDir = 256, kListen, kSocket, kGroup, kState, kRevoked, kValidDays };

constexpr option kOptions[] = {
    {"dir", required_argument, nullptr, kDir},
    {"listen", required_argument, nullptr, kListen},
    {"socket", required_argument, nullptr, kSocket},
    {"group", required_argument, nullptr, kGroup},
    {"state", required_argument, nullptr, kState},
    {"revoked", required_argument, nullptr, kRevoked},
    {"days", required_argument, nullptr, kValidDays},
    {"help", no_argument, nullptr, base::kHelpCode},
    {"version", no_argument, nullptr, base::kVersionCode},
    {nullptr, 0, nullptr, 0},
};

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string InHome(const char* path) {
  std::string home = Variable("HOME");
  return (home.empty() ? "." : home) + "/" + path;
}

std::string StateFolder() {
  std::string given = Variable("STATE_DIRECTORY");  // systemd's; a list, when there are several
  if (!given.empty()) return given.substr(0, given.find(':'));
  return geteuid() == 0 ? "/var/lib/longwire-signer" : InHome(".local/state/longwire-signer");
}

std::optional<std::vector<transport::Address>> ParseListen(const std::string& list,
                                                           std::string* problem) {
  auto addresses = transport::ParseAddresses(list, problem, certificates::kSignerPort);
  if (addresses && addresses->size() > kMaxListen) {
    *problem = "at most " + std::to_string(kMaxListen) + " addresses";
    return std::nullopt;
  }
  return addresses;
}

// Empty if the option is valid, else what is wrong.
std::string Apply(int code, const std::string& value, Options* options) {
  std::string problem;
  switch (code) {
    case kDir:
      options->folder = value;
      return {};
    case kListen:
      if (auto addresses = ParseListen(value, &problem)) options->listen = *addresses;
      return problem.empty() ? "" : "--listen: " + problem;
    case kSocket:
      options->socket = value;
      return {};
    case kGroup:
      options->group = value;
      return {};
    case kState:
      options->state = value;
      return {};
    case kRevoked:
      options->revoked = value;
      return {};
    case kValidDays:
      if (auto days = wire::ParseNumber(value, 1, kMaxDays)) {
        options->days = static_cast<int>(*days);
        return {};
      }
      return "--days expects a number from 1 to " + std::to_string(kMaxDays);
    default:
      return "unknown option";
  }
}

}  // namespace

std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal) {
  Options options;
  options.folder = InHome(".config/longwire/authority");
  options.listen = {{"0.0.0.0", certificates::kSignerPort}};
  options.socket = daemon::RuntimeDirectory() + "/signer";
  options.state = StateFolder();
  options.days = kDays;
  auto apply = [&](int code, const std::string& value) { return Apply(code, value, &options); };
  const base::Program program{"longwire-signer", LONGWIRE_VERSION, kHelp, kOptions};
  if (!base::ReadOptions(program, count, arguments, apply, refusal)) return std::nullopt;
  return options;
}

}  // namespace longwire::signer
