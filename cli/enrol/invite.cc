// longwire invite: registers an invitation with the signer of this host and prints its line.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/environment.h"
#include "base/reason.h"
#include "cli/commands.h"
#include "cli/json/json_object.h"
#include "cli/text.h"
#include "link/certificates/certificate.h"
#include "link/certificates/enrolment.h"
#include "link/certificates/pem_files.h"
#include "server/config/config.h"
#include "server/daemon/settings/paths.h"
#include "wire/duration.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

using certificates::InviteAnswer;
using certificates::InviteRequest;

constexpr const char* kInviteFooter =
    "Prints one line, which goes to the user by a way that nobody else reads. It is good once. The "
    "user runs longwire join LINE. NAME becomes the user's identity: list it at a tenant of the "
    "server.\n\n"
    "The exit status is 0 if the line was printed, 1 if not, 2 if this command was called wrongly.";

constexpr const char* kServiceSocket = "/run/longwire-signer/signer";
constexpr std::chrono::seconds kPatience{10};
constexpr uint32_t kHourSeconds = 3600;
constexpr int64_t kMaxSeconds = 7 * 24 * kHourSeconds;  // the signer's limit

struct Wish {
  std::string name;
  std::string address;
  std::string config = config::kSystemFile;
  std::string socket;
  uint32_t seconds = kHourSeconds;
  bool json = false;
};

int Fail(const std::string& sentence, int status = 1) {
  std::fprintf(stderr, "longwire invite: %s\n", Printable(sentence).c_str());
  return status;
}

uint32_t SecondsOf(const std::string& text) {
  auto seconds = wire::ParseDuration(text, kMaxSeconds);
  if (!seconds) {
    RefuseValue("--for expects a duration up to 7d, such as 30m or 1h, found '" + text + "'");
  }
  return static_cast<uint32_t>(*seconds);
}

// What the server's configuration says; empty where it says nothing or cannot be read.
struct Server {
  std::string host;
  uint16_t port = wire::kDefaultPort;
  bool configured = false;
  bool encrypted = false;
  bool knows_name = false;
  std::optional<wire::Digest> authority;
};

Server ReadServer(const Wish& wish) {
  Server server;
  if (access(wish.config.c_str(), R_OK) != 0) return server;
  config::Draft draft;
  config::Problems problems;
  config::ReadFile(wish.config, &draft, &problems);
  config::FillDefaults(daemon::RuntimeDirectory(), &draft.config, daemon::CacheDirectory());
  const config::Config& config = draft.config;
  std::string sentence;
  server.configured = true;
  server.encrypted = config.has_tls();
  server.knows_name = config.tenants().empty();
  for (const auto& tenant : config.tenants()) {
    server.knows_name |= std::ranges::count(tenant.identities(), wish.name) != 0;
  }
  auto addresses = config::ListenAddresses(config);
  if (!addresses.empty() && addresses[0].port != 0) server.port = addresses[0].port;
  if (auto own = certificates::ReadText(config.tls().certificate(), &sentence)) {
    transport::CertificatePointer certificate = transport::ParseCertificate(*own);
    if (certificate != nullptr) {
      auto names = transport::Describe(certificate.get()).names;
      if (!names.empty()) server.host = names[0];
    }
  }
  if (auto authority = certificates::ReadText(config.tls().authority(), &sentence)) {
    server.authority = certificates::Fingerprint(*authority);
  }
  return server;
}

std::string OwnName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

std::string SocketOf(const Wish& wish) {
  if (!wish.socket.empty()) return wish.socket;
  std::string own = daemon::RuntimeDirectory() + "/signer";
  bool elsewhere =
      base::Environment("LONGWIRE_RUNTIME_DIR") == nullptr && access(own.c_str(), F_OK) != 0;
  return elsewhere ? kServiceSocket : own;
}

// False with a sentence on standard error.
bool Ask(const std::string& path, const InviteRequest& request, InviteAnswer* answer) {
  wire::Descriptor socket = wire::ConnectLocal(path);
  if (!socket.valid()) {
    Fail("no signer answers at " + path + ": " + base::Reason(errno) +
         "; start it: systemctl start longwire-signer (deploy/README.md says what it needs), or "
         "longwire-signer by hand");
    return false;
  }
  std::string packed = certificates::Pack(request);
  // An answer may be there although the signer did not want the request.
  wire::SendMessage(socket.get(), std::as_bytes(std::span(packed)));
  auto message = wire::ReceiveMessage(socket.get(), kPatience);
  if (!message || !certificates::Unpack(message->bytes, answer)) {
    Fail("the signer at " + path + " did not answer as this version expects; see its log");
    return false;
  }
  if (!answer->problem.empty()) Fail(answer->problem);
  return answer->problem.empty();
}

void Note(const std::string& sentence) {
  std::fprintf(stderr, "note: %s\n", Printable(sentence).c_str());
}

// What would make the user's first session fail.
void PrintNotes(const Wish& wish, const Server& server, const InviteAnswer& answer) {
  std::fprintf(stderr, "good once, for %s; on the user's host: longwire join LINE\n",
               SecondsText(wish.seconds).c_str());
  if (!server.configured) return;
  if (!server.encrypted) {
    Note("the server's configuration " + wish.config + " has no tls: so far; see docs/identity.md");
  } else if (server.authority && *server.authority != answer.authority) {
    Note("the signer's authority is not the one of " + wish.config +
         ": the server will refuse what it signs; correct tls: authority there, or --dir of the "
         "signer");
  }
  if (!server.knows_name) {
    Note("no tenant in " + wish.config + " lists '" + wish.name +
         "' yet; add it to identities of one, and run longwire admin reload");
  }
}

int Invite(const Wish& wish) {
  if (wish.name.empty()) RefuseValue("whom? See longwire invite --help");
  const Server server = ReadServer(wish);
  certificates::Invitation invitation;
  if (!wish.address.empty()) {
    std::string problem;
    auto address = transport::ParseAddress(wish.address, &problem, 0);
    if (!address) return Fail("--address: " + problem, kUsageStatus);
    invitation.signer = *address;
  } else {
    invitation.signer.host = server.host.empty() ? OwnName() : server.host;
  }
  InviteRequest request;
  request.name = wish.name;
  request.server = transport::Address{invitation.signer.host, server.port}.Text();
  request.seconds = wish.seconds;
  InviteAnswer answer;
  if (!Ask(SocketOf(wish), request, &answer)) return 1;
  if (invitation.signer.port == 0) invitation.signer.port = answer.port;
  invitation.authority = answer.authority;
  invitation.secret = answer.secret;
  if (wish.json) {
    JsonObject object;
    object.Add("line", invitation.Line()).Add("identity", wish.name);
    object.Add("valid_seconds", uint64_t{wish.seconds}).Print();
  } else {
    std::printf("%s\n", invitation.Line().c_str());
  }
  PrintNotes(wish, server, answer);
  return 0;
}

}  // namespace

void AddInvite(CommandLine& line) {
  auto wish = std::make_shared<Wish>();
  CLI::App& command =
      line.Add(nullptr, "invite",
               "invite a user to this server, where the signer has to run: prints the line for "
               "longwire join",
               [wish] { return Invite(*wish); });
  command.add_option("NAME", wish->name, "the user's identity");
  command
      .add_option("--address", wish->address,
                  "where the user's host reaches the signer (default: the first name in the "
                  "server's certificate, else this host's name; the port at which the signer "
                  "listens)")
      ->type_name("HOST[:PORT]");
  command
      .add_option_function<std::string>(
          "--for", [=](const std::string& text) { wish->seconds = SecondsOf(text); },
          "how long it is valid: 90s, 30m, 1h, 2d (default 1h, at most 7d)")
      ->type_name("DURATION");
  command
      .add_option("--config", wish->config,
                  "the server's configuration, for its name, port and tenants (default "
                  "/etc/longwire/longwired.yaml)")
      ->type_name("FILE");
  command
      .add_option("--socket", wish->socket,
                  "the signer's socket (default: signer in $LONGWIRE_RUNTIME_DIR or this user's "
                  "folder of sockets, else /run/longwire-signer/signer)")
      ->type_name("PATH");
  command.add_flag("--json", wish->json, "the line for programs; notes go to standard error");
  command.footer(kInviteFooter);
}

}  // namespace longwire::cli
