#include "web/options.h"

#include "server/daemon/access/control_client.h"

namespace longwire::web {
namespace {

constexpr const char* kHelp =
    R"(longwire-web: a page that shows what longwired of this host does: devices, tenants, sessions,
memory over the last hour, latencies, events, and who waits for whom. It changes nothing.

  longwire-web [options]

  --listen ADDRESS  where browsers connect (default 127.0.0.1:7480). On this host alone it may go
                    without TLS, and every user of this host can see the page then
  --cert FILE       its certificate (PEM); with --key and --ca it speaks TLS, and shows to whoever
                    has a certificate what longwired would let him see: his own tenant, or all
  --key FILE        the private key to it
  --ca FILE         the authority of the users' certificates, the same as longwired's
  --host NAME       another name by which browsers may call it; may be repeated. The address of
                    --listen and the names in its certificate are known
  --control PATH    longwired's control socket (default control in $LONGWIRE_RUNTIME_DIR, else
                    /run/longwire/control). It serves root, longwired's user, and the members of
                    its admin_group and watch_group
  --help, --version

The exit status is 1 if it cannot listen or a file of TLS is wrong, 2 if it was called wrongly.
)";

constexpr size_t kMaxHosts = 64;

enum Option { kListen = 256, kCert, kKey, kCa, kHost, kControl };

constexpr option kOptions[] = {
    {"listen", required_argument, nullptr, kListen},
    {"cert", required_argument, nullptr, kCert},
    {"key", required_argument, nullptr, kKey},
    {"ca", required_argument, nullptr, kCa},
    {"host", required_argument, nullptr, kHost},
    {"control", required_argument, nullptr, kControl},
    {"help", no_argument, nullptr, base::kHelpCode},
    {"version", no_argument, nullptr, base::kVersionCode},
    {nullptr, 0, nullptr, 0},
};

// Empty if the option is valid, else what is wrong.
std::string Apply(int code, const std::string& value, Options* options) {
  std::string problem;
  switch (code) {
    case kListen:
      if (auto address = transport::ParseAddress(value, &problem, kDefaultPort)) {
        options->listen = *address;
      }
      return problem.empty() ? "" : "--listen: " + problem;
    case kCert:
      options->tls.certificate = value;
      return {};
    case kKey:
      options->tls.key = value;
      return {};
    case kCa:
      options->tls.authority = value;
      return {};
    case kHost:
      if (options->hosts.size() == kMaxHosts) return "--host: at most 64 names";
      options->hosts.push_back(value);
      return {};
    case kControl:
      options->control = {value};
      return {};
    default:
      return "unknown option";
  }
}

// What is wrong with them together; empty when nothing is.
std::string Contradiction(const Options& options) {
  const wire::IdentityFiles& tls = options.tls;
  const bool none = tls.certificate.empty() && tls.key.empty() && tls.authority.empty();
  const bool all = !tls.certificate.empty() && !tls.key.empty() && !tls.authority.empty();
  if (!none && !all) return "TLS takes --cert, --key and --ca";
  if (none && !transport::IsLoopback(options.listen)) {
    return "other hosts can reach " + options.listen.Text() +
           ": give --cert, --key and --ca, or listen at 127.0.0.1";
  }
  return {};
}

}  // namespace

std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal) {
  Options options;
  options.listen = {"127.0.0.1", kDefaultPort};
  options.control = daemon::ControlPaths();
  auto apply = [&](int code, const std::string& value) { return Apply(code, value, &options); };
  const base::Program program{"longwire-web", LONGWIRE_VERSION, kHelp, kOptions};
  if (!base::ReadOptions(program, count, arguments, apply, refusal)) return std::nullopt;
  const std::string problem = Contradiction(options);
  if (problem.empty()) return options;
  *refusal = {"longwire-web: " + problem + "; see longwire-web --help\n", 2};
  return std::nullopt;
}

}  // namespace longwire::web
