// The fields of an X.509 certificate that this project uses.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Declared as OpenSSL does, so that this header needs none of its headers.
typedef struct x509_st X509;
typedef struct evp_pkey_st EVP_PKEY;

namespace longwire::transport {

struct OpenSslDeleter {
  void operator()(X509* certificate) const;
  void operator()(EVP_PKEY* key) const;
};
using CertificatePointer = std::unique_ptr<X509, OpenSslDeleter>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpenSslDeleter>;

struct Certificate {
  std::string common_name;         // of the subject; empty when there is none or more than one
  std::string issuer;              // the issuer's common name, or its whole name without one
  std::vector<std::string> names;  // subject alternative names: host names and IP addresses
  std::string serial;              // hexadecimal
  std::string fingerprint;         // SHA-256 of the certificate, hexadecimal
  std::time_t not_before = 0;
  std::time_t not_after = 0;  // the last second in which it is valid
  bool authority = false;     // may sign certificates
  bool for_server = false;
  bool for_client = false;

  bool IsExpired(std::time_t now) const { return now > not_after; }
  bool IsNotYetValid(std::time_t now) const { return now < not_before; }
};

Certificate Describe(X509* certificate);

// The first certificate, all certificates, and the private key of a PEM text; null or empty when
// there is none. A key with a passphrase counts as none.
CertificatePointer ParseCertificate(std::string_view pem);
std::vector<CertificatePointer> ParseCertificates(std::string_view pem);
KeyPointer ParseKey(std::string_view pem);

// "2026-03-01 12:00:00 UTC".
std::string DateText(std::time_t time);

}  // namespace longwire::transport
