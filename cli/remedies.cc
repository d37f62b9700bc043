#include "cli/remedies.h"

#include <string_view>

namespace longwire::cli {
namespace {

struct Remedy {
  std::string_view said;  // a part of the sentence
  const char* remedy;
};

// The first match is used.
constexpr Remedy kRemedies[] = {
    // The client's library, on this host.
    {" is not a folder of this user alone",
     "chmod 700 it if it is this user's, or set LONGWIRE_RUNTIME_DIR (environment or "
     "/etc/longwire/client.conf) to a folder that is"},
    {" cannot be made: ",
     "set LONGWIRE_RUNTIME_DIR (environment or /etc/longwire/client.conf) to a folder that this "
     "user can make"},
    {" cannot be written to: ",
     "set LONGWIRE_RUNTIME_DIR (environment or /etc/longwire/client.conf) to a folder that this "
     "user can write to"},
    {"set LONGWIRE_LINK to",
     "unset LONGWIRE_LINK, or let it name an installed longwire-link (environment or "
     "/etc/longwire/client.conf); without it, install longwire-client again"},
    {"longwire-link did not start",
     "check that longwire-link --help works; unset LONGWIRE_LINK; and check the folder of that "
     "socket, whose name may be too long"},
    {"LONGWIRE_DEVICES", "correct LONGWIRE_DEVICES (environment or /etc/longwire/client.conf)"},
    {"ulimit -v", "raise the limit on addresses before the program starts: ulimit -v unlimited"},
    {"no range of addresses is free", "unset LONGWIRE_WINDOW_BASES and LONGWIRE_WINDOW_BYTES"},
    {"Longwire needs one for CUDA", "upgrade NVIDIA's driver on the server"},
    // Identity and certificates.
    {"wants TLS",
     "get a certificate from whoever has the server's authority (longwire cert "
     "client), and name it by --cert, --key and --ca"},
    {"closed the connection before TLS began",
     "try again in a moment; if it stays, correct --server, or ask the administrator to raise "
     "admission.waiting"},
    {"speaks no TLS 1.3",
     "correct --server, give the server tls:, or set LONGWIRE_CERT=none for "
     "one on this host"},
    {"cannot read ", "correct --cert, --key and --ca, or the rights of these files"},
    {"no certificate", "correct --cert, --key and --ca; longwire cert show FILE shows what one is"},
    {"expired on", "make a new certificate with longwire cert, or ask who has the authority"},
    {"not signed by the authority", "name the server's authority by --ca or LONGWIRE_CA"},
    {"does not trust any more", "get a certificate of the authority that the server takes"},
    {"refused this client's certificate",
     "get a certificate of the authority that the server takes; check the clocks of both hosts"},
    {"does not know the identity", "ask the server's administrator to list it at a tenant"},
    {"without tenants the server's ",  // local socket
     "add it to identities of a tenant in the server's configuration, and longwire admin reload"},
    {"the identity 'loopback'",
     "add it to identities of a tenant in the server's configuration, "
     "and longwire admin reload; or use a certificate"},
    {" opens sessions too fast",
     "open sessions more slowly, or ask the administrator to raise "
     "admission.openings_per_second"},
    {"no descriptors for more sessions", "ask the administrator to raise LimitNOFILE of longwired"},
    {" sessions already",
     "wait for room with longwire run --wait 10m, end a session that longwire status shows, or ask "
     "the administrator to raise the tenant's sessions or max_sessions"},
    {"upgrade ", "upgrade the older of client and server"},
    // The connection to the server.
    {"nothing listens at", "start longwired there, or correct the port in --server"},
    {"the host name of", "correct the host in --server"},
    {"there is no route to", "correct the address in --server; check that the host is up"},
    {"there is no way to", "correct the address in --server; check that the host is up"},
    {"firewall", "check that the host is up and lets the port through"},
    {"not a Longwire server", "correct the port in --server: something else is there"},
    {"is longwired there stopped", "start longwired there again, or correct the port in --server"},
};

}  // namespace

std::string RemedyFor(const std::string& sentence, const std::string& otherwise) {
  for (const Remedy& known : kRemedies) {
    if (sentence.find(known.said) != std::string::npos) return known.remedy;
  }
  return otherwise;
}

}  // namespace longwire::cli
