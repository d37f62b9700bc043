#include "server/signer/signer.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <filesystem>
#include <span>
#include <utility>

#include "link/certificates/address.h"
#include "link/certificates/pem_files.h"
#include "link/certificates/signing_request.h"

namespace longwire::signer {
namespace {

using certificates::Answer;
using certificates::InviteAnswer;
using certificates::InviteRequest;
using certificates::Request;
using transport::Certificate;
using transport::CertificatePointer;

// People paste a line; whoever needs more tries has something else. In all as many as make no
// difference to 192 random bits.
constexpr Rate kWrongOfOne{5, 5};
constexpr Rate kWrongOfAll{60, 60};
// A client renews every few months; an identity may be on many hosts. In all, a site whose hosts do
// so in the same hour.
constexpr Rate kSignaturesOfOne{60, 1};
constexpr Rate kSignaturesOfAll{120, 120};
constexpr Rate kLinesOfOne{10, 10};
constexpr Rate kLinesOfAll{60, 60};
constexpr time_t kDaySeconds = 24 * 3600;
constexpr time_t kClockSeconds = 300;  // clocks differ
constexpr const char* kTooManySignatures =
    "too many certificates were signed lately, for this identity or in all; try again in a minute";

}  // namespace

Signer::Signer(Settings settings, Log log)
    : settings_(std::move(settings)),
      log_(std::move(log)),
      invitations_(settings_.state_file),
      revocations_(settings_.revoked_file),
      wrong_secrets_(kWrongOfOne, kWrongOfAll),
      signatures_(kSignaturesOfOne, kSignaturesOfAll),
      log_lines_(kLinesOfOne, kLinesOfAll) {}

bool Signer::Start(std::string* sentence) {
  authority_ = transport::ParseCertificate(settings_.authority.certificate);
  auto fingerprint = certificates::Fingerprint(settings_.authority.certificate);
  transport::KeyPointer key = transport::ParseKey(settings_.authority.key);
  bool fits = authority_ != nullptr && fingerprint && key != nullptr &&
              X509_check_private_key(authority_.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    *sentence = "the authority's certificate and key do not belong together";
    return false;
  }
  fingerprint_ = *fingerprint;
  Certificate facts = transport::Describe(authority_.get());
  if (facts.IsExpired(std::time(nullptr))) {
    *sentence = "the authority's certificate expired on " + transport::DateText(facts.not_after) +
                "; make a new authority with: longwire cert init";
    return false;
  }
  if (!settings_.issued_folder.empty()) {
    if (!certificates::MakeFolder(settings_.issued_folder, sentence)) return false;
    ForgetExpired();
  }
  return invitations_.Load(sentence);
}

InviteAnswer Signer::Invite(const InviteRequest& request, uint16_t port, Now now) {
  InviteAnswer answer;
  std::string problem;
  if (request.seconds == 0 || request.seconds > kMaxInvitationSeconds) {
    answer.problem = "an invitation is valid for a second to " +
                     std::to_string(kMaxInvitationSeconds / kDaySeconds) + " days";
    return answer;
  }
  bool plain = request.server.find_first_of(" \t\r\n") == std::string::npos;
  if (!request.server.empty() && (!plain || !transport::ParseAddress(request.server, &problem))) {
    answer.problem = problem.empty() ? "the server's address has blanks in it" : problem;
    return answer;
  }
  auto secret = invitations_.Add(request.name, request.server, now.wall,
                                 now.wall + static_cast<time_t>(request.seconds), &answer.problem);
  if (!secret) return answer;
  log_(false, "'" + request.name + "' is invited until " +
                  transport::DateText(now.wall + static_cast<time_t>(request.seconds)));
  answer.authority = fingerprint_;
  answer.secret = *secret;
  answer.port = port;
  return answer;
}

Answer Signer::Handle(const Request& request, const Caller& caller, Now now) {
  return request.kind == Request::Kind::kJoin ? Join(request, caller, now)
                                              : Renew(request, caller, now);
}

Answer Signer::Join(const Request& request, const Caller& caller, Now now) {
  if (wrong_secrets_.IsExhausted(caller.address, now.steady)) {
    return Refuse(caller, now, "too many wrong secrets came lately; try again in a minute");
  }
  // Before the invitation: a request that cannot be signed does not use it up. Who may invite sets
  // how many certificates an identity gets, so that here only all of them together are limited.
  std::string sentence;
  if (signatures_.IsExhausted("", now.steady)) return Refuse(caller, now, kTooManySignatures);
  auto key =
      certificates::KeyOfRequest(std::as_bytes(std::span(request.signing_request)), &sentence);
  if (key == nullptr) return Refuse(caller, now, sentence);
  Invitations::Used used;
  auto outcome = invitations_.Use(request.secret, now.wall, &used, &sentence);
  if (outcome == Invitations::Outcome::kWrong) wrong_secrets_.Count(caller.address, now.steady);
  if (outcome != Invitations::Outcome::kGood) return Refuse(caller, now, sentence);
  Answer answer = Sign(key.get(), used.name, caller, now);
  answer.server = used.server;
  return answer;
}

Answer Signer::Renew(const Request& request, const Caller& caller, Now now) {
  if (caller.certificate == nullptr) {
    return Refuse(caller, now, "this client has shown no certificate that could be renewed");
  }
  Certificate facts = transport::Describe(caller.certificate);
  std::string problem = caller.problem;
  if (facts.IsExpired(now.wall)) {
    problem = "the certificate of '" + facts.common_name + "' expired on " +
              transport::DateText(facts.not_after) +
              " and cannot be renewed any more; ask for a new invitation (longwire invite " +
              facts.common_name + ")";
  }
  if (problem.empty()) problem = revocations_.Problem(caller.certificate, authority_.get());
  if (problem.empty() && !facts.for_client) problem = "the certificate is not a client's";
  if (!problem.empty()) return Refuse(caller, now, problem);
  std::string sentence;
  auto key =
      certificates::KeyOfRequest(std::as_bytes(std::span(request.signing_request)), &sentence);
  if (key == nullptr) return Refuse(caller, now, sentence);
  if (signatures_.IsExhausted(facts.common_name, now.steady)) {
    return Refuse(caller, now, kTooManySignatures);
  }
  return Sign(key.get(), facts.common_name, caller, now);
}

Answer Signer::Sign(EVP_PKEY* key, const std::string& name, const Caller& caller, Now now) {
  Answer answer;
  signatures_.Count(name, now.steady);
  certificates::Validity validity{now.wall - kClockSeconds,
                                  now.wall + settings_.days * kDaySeconds};
  std::string sentence;
  auto certificate =
      certificates::CertifyClient(settings_.authority, key, name, validity, &sentence);
  // Who withdraws it later has to know it.
  if (!certificate || !Record(*certificate, &sentence)) return Refuse(caller, now, sentence);
  Certificate facts = transport::Describe(transport::ParseCertificate(*certificate).get());
  log_(false, "signed a certificate of '" + name + "' for " + caller.address + ", serial " +
                  facts.serial + ", valid until " + transport::DateText(facts.not_after));
  answer.certificate = *certificate;
  answer.authority = settings_.authority.certificate;
  return answer;
}

bool Signer::Record(const std::string& certificate, std::string* sentence) const {
  if (settings_.issued_folder.empty()) return true;
  Certificate facts = transport::Describe(transport::ParseCertificate(certificate).get());
  const std::string path = settings_.issued_folder + "/" + facts.serial + ".crt";
  if (certificates::WriteText(path, certificate, certificates::Readers::kAll, true, sentence)) {
    return true;
  }
  *sentence = "the signer cannot keep what it signs (" + *sentence + "), so it signs nothing";
  return false;
}

void Signer::ForgetExpired() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(settings_.issued_folder, error)) {
    std::string sentence;
    auto text = certificates::ReadText(entry.path().string(), &sentence);
    CertificatePointer certificate = text ? transport::ParseCertificate(*text) : nullptr;
    bool expired = certificate != nullptr &&
                   transport::Describe(certificate.get()).IsExpired(std::time(nullptr));
    if (expired) std::filesystem::remove(entry.path(), error);
  }
}

Answer Signer::Refuse(const Caller& caller, Now now, const std::string& problem) {
  if (log_lines_.Take(caller.address, now.steady)) {
    log_(true, "refused a request of " + caller.address + ": " + problem);
  }
  Answer answer;
  answer.problem = problem;
  return answer;
}

}  // namespace longwire::signer
