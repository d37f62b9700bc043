#include "link/certificates/authority.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "link/certificates/certificate.h"

namespace longwire::certificates {
namespace {

using transport::CertificatePointer;
using transport::KeyPointer;

constexpr std::time_t kDaySeconds = 24 * 3600;
constexpr std::time_t kClockSeconds = 300;
constexpr size_t kMaxName = 64;  // X.520's bound of a common name
constexpr int kSerialBits = 127;

struct Extension {
  int nid;
  std::string value;
};

std::string OpenSslProblem() {
  char text[256] = "unknown";
  if (unsigned long error = ERR_peek_last_error()) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return std::string("OpenSSL failed: ") + text;
}

bool IsAddress(const std::string& name) {
  in6_addr address;
  return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

// A file is named after it, too: no slash, no dot in front.
bool IsPlainName(const std::string& name, const char* also) {
  auto plain = [&](unsigned char c) { return isalnum(c) != 0 || std::strchr(also, c) != nullptr; };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, plain) &&
         isalnum(static_cast<unsigned char>(name.front())) != 0;
}

template <class Write>
std::string ToPem(Write write) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  if (out == nullptr || write(out.get()) != 1) return {};
  char* text = nullptr;
  long length = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(length)};
}

// 127 random bits: nobody can foretell it, and no two are the same.
bool SetSerial(X509* certificate) {
  std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_new(), BN_free);
  return number != nullptr &&
         BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetName(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                    MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, const Extension& extension) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* made =
      X509V3_EXT_conf_nid(nullptr, &context, extension.nid, extension.value.c_str());
  bool good = made != nullptr && X509_add_ext(certificate, made, -1) == 1;
  X509_EXTENSION_free(made);
  return good;
}

// What stands on a certificate; issuer and its key nullptr: it signs itself.
struct Contents {
  std::string name;
  Validity validity;
  std::vector<Extension> extensions;
  X509* issuer = nullptr;
  EVP_PKEY* issuer_key = nullptr;
};

// The certificate of `key`, of which only the public half is used unless it signs itself; empty
// with a sentence.
std::string Sign(const Contents& request, EVP_PKEY* key, std::string* sentence) {
  CertificatePointer made(X509_new());
  X509* issuer = request.issuer == nullptr ? made.get() : request.issuer;
  EVP_PKEY* issuer_key = request.issuer_key == nullptr ? key : request.issuer_key;
  bool good = made != nullptr && key != nullptr &&
              X509_set_version(made.get(), X509_VERSION_3) == 1 && SetSerial(made.get()) &&
              SetName(made.get(), request.name) &&
              X509_set_issuer_name(made.get(), X509_get_subject_name(issuer)) == 1 &&
              ASN1_TIME_set(X509_getm_notBefore(made.get()), request.validity.from) != nullptr &&
              ASN1_TIME_set(X509_getm_notAfter(made.get()), request.validity.until) != nullptr &&
              X509_set_pubkey(made.get(), key) == 1;
  for (const Extension& extension : request.extensions) {
    good = good && AddExtension(made.get(), issuer, extension);
  }
  good = good && X509_sign(made.get(), issuer_key, EVP_sha256()) > 0;
  std::string text;
  if (good) text = ToPem([&](BIO* out) { return PEM_write_bio_X509(out, made.get()); });
  if (text.empty()) *sentence = OpenSslProblem();
  return text;
}

// Signs with the authority, for no longer than that is valid itself. Empty with a sentence.
std::string SignBy(const Issued& authority, Contents request, EVP_PKEY* subject,
                   std::string* sentence) {
  CertificatePointer issuer = transport::ParseCertificate(authority.certificate);
  KeyPointer key = transport::ParseKey(authority.key);
  if (issuer == nullptr || key == nullptr || X509_check_ca(issuer.get()) != 1 ||
      X509_check_private_key(issuer.get(), key.get()) != 1) {
    *sentence = "the authority's certificate and key do not belong together";
    ERR_clear_error();
    return {};
  }
  request.validity.until =
      std::min(request.validity.until, transport::Describe(issuer.get()).not_after);
  request.extensions.push_back({NID_basic_constraints, "critical,CA:FALSE"});
  request.extensions.push_back({NID_key_usage, "critical,digitalSignature"});
  request.extensions.push_back({NID_subject_key_identifier, "hash"});
  request.extensions.push_back({NID_authority_key_identifier, "keyid:always"});
  request.issuer = issuer.get();
  request.issuer_key = key.get();
  return Sign(request, subject, sentence);
}

// A certificate and the new key that it is for; `make` makes the former.
template <class MakeCertificate>
std::optional<Issued> WithNewKey(MakeCertificate make, std::string* sentence) {
  Issued issued;
  issued.key = NewKey(sentence);
  if (issued.key.empty()) return std::nullopt;
  KeyPointer key = transport::ParseKey(issued.key);
  issued.certificate = make(key.get());
  if (issued.certificate.empty()) return std::nullopt;
  return issued;
}

Contents ClientContents(const std::string& name, Validity validity) {
  return {name, validity, {{NID_ext_key_usage, "clientAuth"}}};
}

}  // namespace

std::string NewKey(std::string* sentence) {
  KeyPointer key(EVP_EC_gen("P-256"));
  std::string text;
  if (key != nullptr) {
    text = ToPem([&](BIO* out) {
      return PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  if (text.empty()) *sentence = OpenSslProblem();
  return text;
}

Validity ValidFor(int days) {
  std::time_t now = std::time(nullptr);
  return {now - kClockSeconds, now + days * kDaySeconds};
}

std::optional<Issued> MakeAuthority(const std::string& name, Validity validity,
                                    std::string* sentence) {
  if (!IsPlainName(name, "-_.@ ")) {
    *sentence = "'" + name + "' is no name for an authority: letters, digits, blanks and -_.@ only";
    return std::nullopt;
  }
  Contents request{name, validity, {}};
  request.extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                        {NID_key_usage, "critical,keyCertSign,cRLSign"},
                        {NID_subject_key_identifier, "hash"}};
  return WithNewKey([&](EVP_PKEY* key) { return Sign(request, key, sentence); }, sentence);
}

namespace {

std::optional<Issued> IssueFor(const char* uses, const Issued& authority,
                               const std::vector<std::string>& names, Validity validity,
                               std::string* sentence) {
  std::string list;
  for (const std::string& name : names) {
    bool address = IsAddress(name);
    if (!address && !IsPlainName(name, "-.")) {
      *sentence = "'" + name + "' is neither a host name nor an IP address (and takes no port)";
      return std::nullopt;
    }
    list += (list.empty() ? "" : ",") + std::string(address ? "IP:" : "DNS:") + name;
  }
  if (list.empty()) {
    *sentence = "a server's certificate needs the names by which clients reach it";
    return std::nullopt;
  }
  Contents request{names.front(), validity, {}};
  request.extensions = {{NID_ext_key_usage, uses}, {NID_subject_alt_name, list}};
  auto sign = [&](EVP_PKEY* key) { return SignBy(authority, request, key, sentence); };
  return WithNewKey(sign, sentence);
}

}  // namespace

std::optional<Issued> IssueServer(const Issued& authority, const std::vector<std::string>& names,
                                  Validity validity, std::string* sentence) {
  return IssueFor("serverAuth", authority, names, validity, sentence);
}

std::optional<Issued> IssuePeer(const Issued& authority, const std::vector<std::string>& names,
                                Validity validity, std::string* sentence) {
  return IssueFor("serverAuth,clientAuth", authority, names, validity, sentence);
}

bool IsIdentityName(const std::string& name, std::string* sentence) {
  // "loopback" and "uid:N" are identities of those who come without a certificate.
  if (IsPlainName(name, "-_.@") && name != "loopback") return true;
  *sentence = "'" + name +
              "' is no name for an identity: letters, digits and -_.@ only, at "
              "most 64, and not 'loopback'";
  return false;
}

std::optional<Issued> IssueClient(const Issued& authority, const std::string& name,
                                  Validity validity, std::string* sentence) {
  if (!IsIdentityName(name, sentence)) return std::nullopt;
  auto sign = [&](EVP_PKEY* key) {
    return SignBy(authority, ClientContents(name, validity), key, sentence);
  };
  return WithNewKey(sign, sentence);
}

std::optional<std::string> CertifyClient(const Issued& authority, EVP_PKEY* key,
                                         const std::string& name, Validity validity,
                                         std::string* sentence) {
  if (!IsIdentityName(name, sentence)) return std::nullopt;
  std::string text = SignBy(authority, ClientContents(name, validity), key, sentence);
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace longwire::certificates
