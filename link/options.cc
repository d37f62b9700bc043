#include "link/options.h"

#include <string_view>

#include "wire/number.h"

namespace longwire::link {
namespace {

constexpr const char* kHelp =
    R"(longwire-link: carries the CUDA calls of this user's programs to a Longwire server.
Programs start it by themselves; it ends when it has been idle for a while.

  longwire-link --server HOST:PORT[,HOST:PORT...] --socket PATH [options]

  --server LIST        servers, tried in this order (default port 7411)
  --socket PATH        where programs find it (a unix socket)
  --cert FILE, --key FILE, --ca FILE
                       this user's certificate, the private key to it, and the authority of the
                       servers (PEM); without them connections are not encrypted
  --compression HOW    auto (where trying shows that it pays; default), none, lz4 or zstd
  --idle-seconds N     end after N seconds without a program (default 60, 0 = never)
  --foreground         keep standard error and the working directory (for a service)
  --log FILE           append the log to FILE
  --log-level LEVEL    error, warning, info or debug (default info)
  --ready-fd N         close descriptor N once programs can connect
  --successor N        end what a link that was killed has left, then oneself soon (its guard, the
                       parent of each link, starts it so)
  --help, --version
)";

constexpr int kMaxIdleSeconds = 1'000'000;
constexpr int kMaxDescriptor = 1 << 20;
constexpr int kMaxSuccessor = 100;
constexpr std::chrono::seconds kIdleSuccessor{5};

enum Option {
  kServer = 256,
  kSocket,
  kCertificate,
  kKey,
  kAuthority,
  kCompression,
  kIdle,
  kForeground,
  kLogFile,
  kLogLevel,
  kReady,
  kSuccessor
};

constexpr option kOptions[] = {
    {"server", required_argument, nullptr, kServer},
    {"socket", required_argument, nullptr, kSocket},
    {"cert", required_argument, nullptr, kCertificate},
    {"key", required_argument, nullptr, kKey},
    {"ca", required_argument, nullptr, kAuthority},
    {"compression", required_argument, nullptr, kCompression},
    {"idle-seconds", required_argument, nullptr, kIdle},
    {"foreground", no_argument, nullptr, kForeground},
    {"log", required_argument, nullptr, kLogFile},
    {"log-level", required_argument, nullptr, kLogLevel},
    {"ready-fd", required_argument, nullptr, kReady},
    {"successor", required_argument, nullptr, kSuccessor},
    {"help", no_argument, nullptr, base::kHelpCode},
    {"version", no_argument, nullptr, base::kVersionCode},
    {nullptr, 0, nullptr, 0},
};

std::string Found(std::string_view value) { return ", found '" + std::string(value) + "'"; }

// Empty when the option was understood.
std::string Apply(int code, std::string_view value, Options* options) {
  std::string problem;
  switch (code) {
    case kServer: {
      auto servers = transport::ParseAddresses(value, &problem);
      if (servers) options->servers = std::move(*servers);
      // The program that started us gets it as the refusal of its session; it does not see our
      // standard error.
      options->server_problem = problem;
      return {};
    }
    case kSocket:
      options->socket = value;
      return {};
    case kCertificate:
      options->identity.certificate = value;
      return {};
    case kKey:
      options->identity.key = value;
      return {};
    case kAuthority:
      options->identity.authority = value;
      return {};
    case kCompression:
      if (transport::ParsePacking(value, &options->packing)) return {};
      return "--compression expects auto, none, lz4 or zstd" + Found(value);
    case kIdle: {
      auto seconds = wire::ParseNumber(value, 0, kMaxIdleSeconds);
      if (!seconds) return "--idle-seconds expects a number" + Found(value);
      options->idle = std::chrono::seconds(*seconds);
      return {};
    }
    case kForeground:
      options->foreground = true;
      return {};
    case kLogFile:
      options->log_file = value;
      return {};
    case kLogLevel:
      if (transport::ParseLogLevel(value, &options->log_level)) return {};
      return "--log-level expects error, warning, info or debug" + Found(value);
    case kReady: {
      auto descriptor = wire::ParseNumber(value, 0, kMaxDescriptor);
      if (!descriptor) return "--ready-fd expects a descriptor's number" + Found(value);
      options->ready_descriptor = static_cast<int>(*descriptor);
      return {};
    }
    case kSuccessor: {
      auto number = wire::ParseNumber(value, 1, kMaxSuccessor);
      if (!number) return "--successor expects a number" + Found(value);
      options->successor = static_cast<int>(*number);
      options->ready_descriptor = -1;  // was of the link before
      options->idle = kIdleSuccessor;
      return {};
    }
    default:
      return "unknown option";
  }
}

}  // namespace

std::optional<Options> ParseOptions(int count, char** arguments, Refusal* refusal) {
  Options options;
  auto apply = [&](int code, const std::string& value) { return Apply(code, value, &options); };
  const base::Program program{"longwire-link", LONGWIRE_VERSION, kHelp, kOptions};
  if (!base::ReadOptions(program, count, arguments, apply, refusal)) return std::nullopt;
  const bool served = !options.servers.empty() || !options.server_problem.empty();
  if (served && !options.socket.empty()) return options;
  refusal->text = "longwire-link: --server and --socket are needed; see longwire-link --help\n";
  return std::nullopt;
}

}  // namespace longwire::link
