// What is signed, for whom, and what is refused.
#include "server/signer/signer.h"

#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "link/certificates/pem_files.h"
#include "link/certificates/signing_request.h"

namespace longwire::signer {
namespace {

using certificates::Answer;
using certificates::Issued;
using certificates::Request;
using testing::HasSubstr;

constexpr std::time_t kHour = 3600;

Issued MakeAuthority() {
  std::string sentence;
  return *certificates::MakeAuthority("Test authority", certificates::ValidFor(100), &sentence);
}

class SignerTest : public testing::Test {
 protected:
  SignerTest() : authority_(MakeAuthority()) {
    char path[] = "/tmp/longwire-signer-XXXXXX";
    if (mkdtemp(path) != nullptr) folder_ = path;
    settings_.authority = authority_;
    settings_.state_file = folder_ + "/invitations";
    settings_.issued_folder = folder_ + "/issued";
    settings_.revoked_file = folder_ + "/ca.crl";
    signer_ = std::make_unique<Signer>(
        settings_, [this](bool, const std::string& line) { log_ += line + "\n"; });
    std::string sentence;
    EXPECT_TRUE(signer_->Start(&sentence)) << sentence;
    key_ = certificates::NewKey(&sentence);
    request_ = certificates::MakeSigningRequest(key_, &sentence).value_or("");
  }
  ~SignerTest() override { std::filesystem::remove_all(folder_); }

  static Now At(std::time_t seconds_from_now = 0) {
    return {std::time(nullptr) + seconds_from_now,
            std::chrono::steady_clock::now() + std::chrono::seconds(seconds_from_now)};
  }
  certificates::InviteAnswer Invite(const std::string& name) {
    return signer_->Invite({name, "gpu:7411", kHour}, 7413, At());
  }
  Answer Join(const certificates::Secret& secret, const std::string& signing_request,
              const std::string& address = "192.0.2.1") {
    return signer_->Handle({Request::Kind::kJoin, secret, signing_request}, {address}, At());
  }
  Answer Renew(const Caller& caller, Now now = At()) {
    return signer_->Handle({Request::Kind::kRenew, {}, request_}, caller, now);
  }
  std::string IssuedTo(const std::string& name, certificates::Validity validity) {
    std::string sentence;
    return certificates::IssueClient(authority_, name, validity, &sentence)->certificate;
  }
  // A list of the authority (or another one) with this certificate.
  void Revoke(const std::string& certificate, const Issued& by) {
    auto issuer = transport::ParseCertificate(by.certificate);
    auto key = transport::ParseKey(by.key);
    auto gone = transport::ParseCertificate(certificate);
    X509_CRL* list = X509_CRL_new();
    X509_CRL_set_version(list, 1);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer.get()));
    ASN1_TIME* now = ASN1_TIME_set(nullptr, std::time(nullptr));
    X509_CRL_set1_lastUpdate(list, now);
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(gone.get()));
    X509_REVOKED_set_revocationDate(entry, now);
    X509_CRL_add0_revoked(list, entry);
    X509_CRL_sort(list);
    X509_CRL_sign(list, key.get(), EVP_sha256());
    BIO* out = BIO_new_file(settings_.revoked_file.c_str(), "w");
    PEM_write_bio_X509_CRL(out, list);
    BIO_free(out);
    ASN1_TIME_free(now);
    X509_CRL_free(list);
  }

  const Issued authority_;
  std::string folder_;
  std::string log_;
  Settings settings_;
  std::unique_ptr<Signer> signer_;
  std::string key_;
  std::string request_;
};

transport::Certificate Facts(const std::string& certificate) {
  return transport::Describe(transport::ParseCertificate(certificate).get());
}

TEST_F(SignerTest, WhoIsInvitedGetsACertificate) {
  auto invited = Invite("alice");
  ASSERT_EQ(invited.problem, "");
  EXPECT_EQ(invited.port, 7413);
  EXPECT_EQ(invited.authority, *certificates::Fingerprint(authority_.certificate));
  Answer answer = Join(invited.secret, request_);
  ASSERT_EQ(answer.problem, "");
  EXPECT_EQ(answer.authority, authority_.certificate);
  EXPECT_EQ(answer.server, "gpu:7411");
  auto facts = Facts(answer.certificate);
  EXPECT_EQ(facts.common_name, "alice");
  EXPECT_TRUE(facts.for_client);
  EXPECT_FALSE(facts.for_server);
  EXPECT_EQ(X509_check_private_key(transport::ParseCertificate(answer.certificate).get(),
                                   transport::ParseKey(key_).get()),
            1);
  EXPECT_THAT(log_,
              HasSubstr("signed a certificate of 'alice' for 192.0.2.1, serial " + facts.serial));
  std::string sentence;
  EXPECT_EQ(
      certificates::ReadText(settings_.issued_folder + "/" + facts.serial + ".crt", &sentence),
      answer.certificate)
      << "who takes it back does not find it";
}

TEST_F(SignerTest, WhatHasExpiredIsForgotten) {
  std::string old = settings_.issued_folder + "/1.crt", valid = settings_.issued_folder + "/2.crt";
  std::ofstream(old) << IssuedTo("alice", {At(-7200).wall, At(-3600).wall});
  std::ofstream(valid) << IssuedTo("alice", certificates::ValidFor(1));
  std::string sentence;
  ASSERT_TRUE(signer_->Start(&sentence)) << sentence;
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(valid));
}

TEST_F(SignerTest, ASecondUseIsRefused) {
  auto invited = Invite("alice");
  ASSERT_EQ(Join(invited.secret, request_).problem, "");
  Answer second = Join(invited.secret, request_);
  EXPECT_THAT(second.problem, HasSubstr("used already"));
  EXPECT_EQ(second.certificate, "");
}

// A request for the key that wants to be somebody else, a server and an authority.
std::string PresumptuousRequest(const std::string& key_text) {
  auto key = transport::ParseKey(key_text);
  X509_REQ* request = X509_REQ_new();
  X509_REQ_set_pubkey(request, key.get());
  X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("root"), -1, -1, 0);
  STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
  for (auto [nid, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                            {NID_ext_key_usage, "serverAuth"},
                            {NID_key_usage, "keyCertSign"},
                            {NID_subject_alt_name, "DNS:gpu.example.org"}}) {
    sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  }
  X509_REQ_add_extensions(request, extensions);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_sign(request, key.get(), EVP_sha256());
  unsigned char* der = nullptr;
  int length = i2d_X509_REQ(request, &der);
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  X509_REQ_free(request);
  return text;
}

TEST_F(SignerTest, NamesAndExtensionsOfARequestCountForNothing) {
  Answer answer = Join(Invite("alice").secret, PresumptuousRequest(key_));
  ASSERT_EQ(answer.problem, "");
  auto facts = Facts(answer.certificate);
  EXPECT_EQ(facts.common_name, "alice");
  EXPECT_TRUE(facts.names.empty());
  EXPECT_FALSE(facts.authority);
  EXPECT_FALSE(facts.for_server);
}

TEST_F(SignerTest, ABadRequestDoesNotUseTheInvitationUp) {
  auto invited = Invite("alice");
  EXPECT_THAT(Join(invited.secret, "garbage").problem, HasSubstr("PKCS#10"));
  EXPECT_EQ(Join(invited.secret, request_).problem, "");
}

TEST_F(SignerTest, WrongSecretsAreLimitedForOneAddressAndForAll) {
  auto invited = Invite("alice");
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Join({}, request_).problem, HasSubstr("no such invitation"));
  }
  EXPECT_THAT(Join(invited.secret, request_).problem, HasSubstr("too many wrong secrets"));
  EXPECT_EQ(Join(invited.secret, request_, "192.0.2.2").problem, "");
  auto other = Invite("bob");
  for (int i = 0; i < 100; ++i) Join({}, request_, "198.51.100." + std::to_string(i));
  EXPECT_THAT(Join(other.secret, request_, "192.0.2.3").problem,
              HasSubstr("too many wrong secrets"));
}

TEST_F(SignerTest, AValidCertificateIsRenewedForTheSameIdentity) {
  auto own = transport::ParseCertificate(IssuedTo("alice", certificates::ValidFor(1)));
  Answer answer = Renew({"192.0.2.1", own.get()});
  ASSERT_EQ(answer.problem, "");
  EXPECT_EQ(Facts(answer.certificate).common_name, "alice");
  EXPECT_NE(Facts(answer.certificate).serial, transport::Describe(own.get()).serial);
}

TEST_F(SignerTest, WhatIsNotRenewed) {
  auto good = transport::ParseCertificate(IssuedTo("alice", certificates::ValidFor(1)));
  auto late = transport::ParseCertificate(IssuedTo("alice", {At(-7200).wall, At(-3600).wall}));
  std::string sentence;
  auto server = transport::ParseCertificate(
      certificates::IssueServer(authority_, {"gpu"}, certificates::ValidFor(1), &sentence)
          ->certificate);
  EXPECT_THAT(Renew({"192.0.2.1", nullptr}).problem, HasSubstr("shown no certificate"));
  EXPECT_THAT(Renew({"192.0.2.1", late.get()}).problem, HasSubstr("expired on"));
  EXPECT_THAT(Renew({"192.0.2.1", server.get()}).problem, HasSubstr("not a client's"));
  EXPECT_EQ(Renew({"192.0.2.1", good.get(), "of another authority"}).problem,
            "of another authority");
}

TEST_F(SignerTest, WhatWasRevokedIsNotRenewed) {
  std::string gone = IssuedTo("alice", certificates::ValidFor(1));
  auto certificate = transport::ParseCertificate(gone);
  auto other = transport::ParseCertificate(IssuedTo("bob", certificates::ValidFor(1)));
  EXPECT_EQ(Renew({"192.0.2.1", certificate.get()}).problem, "");
  Revoke(gone, authority_);
  EXPECT_THAT(Renew({"192.0.2.1", certificate.get()}).problem, HasSubstr("was revoked"));
  EXPECT_EQ(Renew({"192.0.2.1", other.get()}).problem, "");
  // A list that cannot be trusted lets nobody through.
  Revoke(gone, MakeAuthority());
  EXPECT_THAT(Renew({"192.0.2.1", other.get()}).problem, HasSubstr("not signed by the authority"));
  std::ofstream(settings_.revoked_file) << "nothing";
  EXPECT_THAT(Renew({"192.0.2.1", other.get()}).problem, HasSubstr("no list of revoked"));
}

TEST_F(SignerTest, SignaturesAreLimited) {
  auto own = transport::ParseCertificate(IssuedTo("alice", certificates::ValidFor(1)));
  std::string problem;
  for (int i = 0; i < 100 && problem.empty(); ++i) {
    problem = Renew({"192.0.2.1", own.get()}).problem;
  }
  EXPECT_THAT(problem, HasSubstr("too many certificates"));
  auto other = transport::ParseCertificate(IssuedTo("bob", certificates::ValidFor(1)));
  EXPECT_EQ(Renew({"192.0.2.1", other.get()}).problem, "");
}

TEST_F(SignerTest, LinesOfTheLogAreLimited) {
  for (int i = 0; i < 1000; ++i) Join({}, "garbage");
  EXPECT_LE(std::ranges::count(log_, '\n'), 20);
}

TEST_F(SignerTest, AnInvitationHasItsBounds) {
  EXPECT_THAT(signer_->Invite({"alice", "", 0}, 1, At()).problem, HasSubstr("valid for"));
  EXPECT_THAT(signer_->Invite({"alice", "", 0xffffffff}, 1, At()).problem, HasSubstr("7 days"));
  EXPECT_THAT(signer_->Invite({"alice", "a b", 60}, 1, At()).problem, HasSubstr("blanks"));
  EXPECT_THAT(signer_->Invite({"uid:0", "", 60}, 1, At()).problem, HasSubstr("no name"));
}

TEST_F(SignerTest, AnAuthorityWithAnotherKeyDoesNotStart) {
  Settings settings = settings_;
  settings.authority.key = key_;
  Signer other(settings, [](bool, const std::string&) {});
  std::string sentence;
  EXPECT_FALSE(other.Start(&sentence));
  EXPECT_THAT(sentence, HasSubstr("do not belong together"));
}

}  // namespace
}  // namespace longwire::signer
