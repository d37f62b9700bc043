#include "link/certificates/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace longwire::transport {
namespace {

using BioPointer = std::unique_ptr<BIO, decltype(&BIO_free)>;

BioPointer Reader(std::string_view text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

// PEM readers ask at the terminal otherwise.
int NoPassphrase(char*, int, int, void*) { return -1; }

std::string TextOf(const ASN1_STRING* string) {
  unsigned char* utf8 = nullptr;
  int length = ASN1_STRING_to_UTF8(&utf8, string);
  if (length < 0) return "";
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(length));
  OPENSSL_free(utf8);
  return text;
}

// Empty unless there is exactly one, of characters that print.
std::string CommonName(const X509_NAME* name) {
  int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (index < 0 || X509_NAME_get_index_by_NID(name, NID_commonName, index) >= 0) return "";
  std::string text = TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
  for (unsigned char c : text) {
    if (c < 0x20 || c == 0x7f) return "";
  }
  return text;
}

std::string WholeName(const X509_NAME* name) {
  BioPointer out(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  long length = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(length)};
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char text[INET6_ADDRSTRLEN] = "";
  int length = ASN1_STRING_length(address);
  if (length == 4 || length == 16) {
    inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof(text));
  }
  return text;
}

std::vector<std::string> AlternativeNames(X509* certificate) {
  std::vector<std::string> names;
  auto* list = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
    if (name->type == GEN_DNS) names.push_back(TextOf(name->d.dNSName));
    if (name->type == GEN_IPADD) names.push_back(AddressText(name->d.iPAddress));
  }
  GENERAL_NAMES_free(list);
  return names;
}

std::time_t TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string Hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string SerialText(const X509* certificate) {
  BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* text = number == nullptr ? nullptr : BN_bn2hex(number);
  std::string serial = text == nullptr ? "" : text;
  OPENSSL_free(text);
  BN_free(number);
  return serial;
}

}  // namespace

void OpenSslDeleter::operator()(X509* certificate) const { X509_free(certificate); }
void OpenSslDeleter::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

Certificate Describe(X509* certificate) {
  Certificate facts;
  facts.common_name = CommonName(X509_get_subject_name(certificate));
  const X509_NAME* issuer = X509_get_issuer_name(certificate);
  facts.issuer = CommonName(issuer);
  if (facts.issuer.empty()) facts.issuer = WholeName(issuer);
  facts.names = AlternativeNames(certificate);
  facts.serial = SerialText(certificate);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &length) == 1) {
    facts.fingerprint = Hexadecimal(digest, length);
  }
  facts.not_before = TimeOf(X509_get0_notBefore(certificate));
  facts.not_after = TimeOf(X509_get0_notAfter(certificate));
  facts.authority = X509_check_ca(certificate) == 1;
  facts.for_server = X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0) == 1;
  facts.for_client = X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
  return facts;
}

CertificatePointer ParseCertificate(std::string_view pem) {
  BioPointer in = Reader(pem);
  CertificatePointer certificate(PEM_read_bio_X509(in.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return certificate;
}

std::vector<CertificatePointer> ParseCertificates(std::string_view pem) {
  BioPointer in = Reader(pem);
  std::vector<CertificatePointer> all;
  while (X509* certificate = PEM_read_bio_X509(in.get(), nullptr, NoPassphrase, nullptr)) {
    all.emplace_back(certificate);
  }
  ERR_clear_error();
  return all;
}

KeyPointer ParseKey(std::string_view pem) {
  BioPointer in = Reader(pem);
  KeyPointer key(PEM_read_bio_PrivateKey(in.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

std::string DateText(std::time_t time) {
  std::tm parts{};
  char text[64];
  gmtime_r(&time, &parts);
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace longwire::transport
