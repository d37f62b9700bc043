#include "cli/enrol/renew.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/connect.h"
#include "cli/enrol/signer_file.h"
#include "cli/json/json_object.h"
#include "cli/text.h"
#include "link/certificates/pem_files.h"
#include "link/certificates/signer_client.h"
#include "link/certificates/signing_request.h"
#include "link/transport/tls_files.h"

namespace longwire::cli {
namespace {

constexpr const char* kRenewFooter =
    "The signer sees the present certificate and signs a new one for the same identity and the "
    "same "
    "key. The file of the certificate is replaced at once; sessions that run go on.\n\n"
    "The exit status is 0 if there is a new certificate or none is due, 1 if that failed, 2 if "
    "this "
    "command was called wrongly.";

// A new one is due when less than the third part is left.
constexpr int kParts = 3;

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire cert renew: %s\n", Printable(sentence).c_str());
  return 1;
}

bool IsDue(const transport::Certificate& own) {
  return (own.not_after - std::time(nullptr)) * kParts < own.not_after - own.not_before;
}

std::optional<transport::Address> FindSigner(const std::string& given,
                                             const std::string& certificate,
                                             std::string* sentence) {
  constexpr uint16_t kPort = certificates::kSignerPort;
  if (!given.empty()) return transport::ParseAddress(given, sentence, kPort);
  std::string ignored;
  std::string file = std::filesystem::path(certificate).parent_path() / kSignerFile;
  if (auto text = certificates::ReadText(file, &ignored)) {
    return transport::ParseAddress(wire::Trim(text->substr(0, text->find('\n'))), sentence, kPort);
  }
  std::string server = wire::ClientSettings().Value("LONGWIRE_SERVER");
  server = server.substr(0, server.find(','));
  if (server.empty() || server.starts_with("unix:")) {
    *sentence = "which signer? give --server HOST:PORT";
    return std::nullopt;
  }
  auto address = transport::ParseAddress(server, sentence, kPort);
  if (address) address->port = kPort;  // that of LONGWIRE_SERVER is the daemon's
  return address;
}

int PrintJson(const std::string& file, const transport::Certificate& facts, bool renewed) {
  JsonObject object;
  object.Add("certificate", file).Add("identity", facts.common_name);
  object.Add("valid_until", transport::DateText(facts.not_after)).Add("renewed", renewed).Print();
  return 0;
}

int RenewAt(const transport::Address& signer, const transport::TlsMaterial& own, bool json) {
  std::string sentence;
  auto signing_request = certificates::MakeSigningRequest(own.key, &sentence);
  if (!signing_request) return Fail(sentence);
  certificates::Request request;
  request.kind = certificates::Request::Kind::kRenew;
  request.signing_request = *signing_request;
  certificates::SignerTrust trust;
  trust.authority = own.authority;
  trust.certificate = own.certificate;
  trust.key = own.key;
  auto answer = certificates::AskSigner(signer, trust, request, kSignerPatience, &sentence);
  if (!answer) return Fail(sentence);
  if (!answer->problem.empty()) {
    return Fail("the signer at " + signer.Text() + " refused: " + answer->problem);
  }
  // The handshake has proved that the signer is of an authority that this client trusts.
  auto fingerprint = certificates::Fingerprint(answer->authority);
  if (!fingerprint) return Fail("the signer sent no authority");
  sentence = certificates::ProblemOf(*answer, *fingerprint, own.key);
  if (!sentence.empty()) return Fail(sentence);
  if (!certificates::WriteText(own.files.certificate, answer->certificate,
                               certificates::Readers::kAll, true, &sentence)) {
    return Fail(sentence);
  }
  transport::CertificatePointer made = transport::ParseCertificate(answer->certificate);
  transport::Certificate facts = transport::Describe(made.get());
  if (json) return PrintJson(own.files.certificate, facts, true);
  std::printf("%s: the certificate of '%s', valid until %s\n", own.files.certificate.c_str(),
              Printable(facts.common_name).c_str(), transport::DateText(facts.not_after).c_str());
  return 0;
}

int Renew(const std::string& given, bool if_due, bool json) {
  std::string sentence;
  wire::IdentityFiles files = wire::FindIdentityFiles(wire::ClientSettings());
  if (files.none()) return Fail("this user has no certificate yet; see longwire join --help");
  auto own = transport::LoadTls(files, transport::TlsRole::kClient, &sentence);
  if (!own) return Fail(sentence + "; what has expired is not renewed: ask for an invitation");
  if (if_due && !IsDue(own->own)) {
    if (json) return PrintJson(files.certificate, own->own, false);
    std::printf("%s: valid until %s, no new one is due\n", files.certificate.c_str(),
                transport::DateText(own->own.not_after).c_str());
    return 0;
  }
  auto signer = FindSigner(given, files.certificate, &sentence);
  if (!signer) return Fail(sentence);
  return RenewAt(*signer, *own, json);
}

}  // namespace

void AddRenew(CommandLine& line, CLI::App& cert) {
  auto signer = std::make_shared<std::string>();
  auto if_due = std::make_shared<bool>();
  auto json = std::make_shared<bool>();
  CLI::App& command =
      line.Add(&cert, "renew", "a new certificate for this user, while the present one is valid",
               [=] { return Renew(*signer, *if_due, *json); });
  AddConnection(command, Reach::kNetwork);
  // Here it is the signer's address.
  command.remove_option(command.get_option("--server"));
  command
      .add_option("--server", *signer,
                  "where the signer listens (default: what longwire join wrote beside the "
                  "certificate, else the host of $LONGWIRE_SERVER with port 7413)")
      ->type_name("HOST[:PORT]");
  command.add_flag("--if-due", *if_due,
                   "do nothing while a third of its validity or more is left, as "
                   "longwire-renew.timer");
  command.add_flag("--json", *json, "the result for programs");
  command.footer(kRenewFooter);
}

}  // namespace longwire::cli
