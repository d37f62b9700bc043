#include "cli/cert/revoke.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "cli/cert/issued.h"
#include "cli/json/json_object.h"
#include "cli/text.h"
#include "link/certificates/certificate.h"
#include "link/certificates/pem_files.h"

namespace longwire::cli {
namespace {

constexpr std::time_t kClockSeconds = 300;
constexpr std::time_t kListSeconds = std::time_t{3650} * 24 * 3600;

struct ListDeleter {
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
};
using ListPointer = std::unique_ptr<X509_CRL, ListDeleter>;

struct Authority {
  transport::CertificatePointer certificate;
  transport::KeyPointer key;
};

int Fail(const std::string& sentence) {
  ERR_clear_error();
  std::fprintf(stderr, "longwire cert: %s\n", Printable(sentence).c_str());
  return 1;
}

std::string ListPath(const std::string& folder) { return folder + "/revoked.crl"; }

bool ReadAuthority(const std::string& folder, Authority* authority, std::string* sentence) {
  auto files = certificates::ReadFiles(certificates::FilesOf(folder + "/ca"), sentence);
  if (!files) {
    *sentence += "; make an authority with: longwire cert init";
    return false;
  }
  authority->certificate = transport::ParseCertificate(files->certificate);
  authority->key = transport::ParseKey(files->key);
  bool fits = authority->certificate != nullptr && authority->key != nullptr &&
              X509_check_private_key(authority->certificate.get(), authority->key.get()) == 1;
  if (!fits) *sentence = "the authority's certificate and key do not belong together";
  return fits;
}

// The list as it is, or an empty one; nullptr when the file is no list of this authority.
ListPointer ReadList(const std::string& folder, const Authority& authority, bool* is_new) {
  *is_new = !std::filesystem::exists(ListPath(folder));
  if (*is_new) {
    ListPointer list(X509_CRL_new());
    bool good = list != nullptr && X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
                X509_CRL_set_issuer_name(list.get(),
                                         X509_get_subject_name(authority.certificate.get())) == 1;
    return good ? std::move(list) : nullptr;
  }
  std::string sentence;
  auto text = certificates::ReadText(ListPath(folder), &sentence);
  if (!text) return nullptr;
  std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), BIO_free);
  ListPointer list(PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr));
  bool ours = list != nullptr && X509_CRL_verify(list.get(), authority.key.get()) == 1;
  return ours ? std::move(list) : nullptr;
}

bool Add(X509_CRL* list, X509* certificate) {
  X509_REVOKED* entry = X509_REVOKED_new();
  ASN1_TIME* now = ASN1_TIME_set(nullptr, std::time(nullptr));
  bool good = entry != nullptr && now != nullptr &&
              X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate)) == 1 &&
              X509_REVOKED_set_revocationDate(entry, now) == 1 &&
              X509_CRL_add0_revoked(list, entry) == 1;
  if (!good) X509_REVOKED_free(entry);
  ASN1_TIME_free(now);
  return good;
}

// Each list has a number, one more than the list before.
bool SetNumber(X509_CRL* list) {
  ASN1_INTEGER* before =
      static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(list, NID_crl_number, nullptr, nullptr));
  int64_t number = 0;
  if (before != nullptr) ASN1_INTEGER_get_int64(&number, before);
  ASN1_INTEGER_free(before);
  ASN1_INTEGER* next = ASN1_INTEGER_new();
  bool good = next != nullptr && ASN1_INTEGER_set_int64(next, number + 1) == 1 &&
              X509_CRL_add1_ext_i2d(list, NID_crl_number, next, 0, X509V3_ADD_REPLACE) == 1;
  ASN1_INTEGER_free(next);
  return good;
}

bool Sign(X509_CRL* list, const Authority& authority) {
  const std::time_t now = std::time(nullptr);
  ASN1_TIME* from = ASN1_TIME_set(nullptr, now - kClockSeconds);
  ASN1_TIME* until = ASN1_TIME_set(nullptr, now + kListSeconds);
  bool good = from != nullptr && until != nullptr && SetNumber(list) &&
              X509_CRL_set1_lastUpdate(list, from) == 1 &&
              X509_CRL_set1_nextUpdate(list, until) == 1 && X509_CRL_sort(list) == 1 &&
              X509_CRL_sign(list, authority.key.get(), EVP_sha256()) > 0;
  ASN1_TIME_free(from);
  ASN1_TIME_free(until);
  return good;
}

// In the place of the old file at once: daemons watch it.
bool WriteList(const std::string& path, X509_CRL* list, std::string* sentence) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  *sentence = "OpenSSL cannot write the list";
  if (out == nullptr || PEM_write_bio_X509_CRL(out.get(), list) != 1) return false;
  char* text = nullptr;
  long length = BIO_get_mem_data(out.get(), &text);
  return certificates::WriteText(path, std::string(text, static_cast<size_t>(length)),
                                 certificates::Readers::kAll, true, sentence);
}

using Certificates = std::vector<transport::CertificatePointer>;

// All that this authority has issued for the name: without those of the signer it would not be all.
bool FindByName(const RevokeWish& wish, const Authority& authority, Certificates* found,
                std::string* sentence) {
  const std::string signers = wish.issued.empty() ? UsualSignersFolder() : wish.issued;
  if (!FindIssued(wish.folder, signers, wish.name, found, sentence)) return false;
  std::erase_if(*found, [&](const auto& certificate) {
    return X509_verify(certificate.get(), authority.key.get()) != 1;
  });
  if (!found->empty()) return true;
  *sentence = wish.folder + (signers.empty() ? " has" : " and " + signers + " have") +
              " no certificate of '" + wish.name +
              "' by this authority; name the certificate's file";
  return false;
}

bool FindCertificates(const RevokeWish& wish, const Authority& authority, Certificates* found,
                      std::string* sentence) {
  if (wish.name.empty()) return true;
  if (wish.name.find('/') == std::string::npos && !wish.name.ends_with(".crt")) {
    return FindByName(wish, authority, found, sentence);
  }
  auto text = certificates::ReadText(wish.name, sentence);
  if (!text) return false;
  found->push_back(transport::ParseCertificate(*text));
  if (found->front() != nullptr) return true;
  *sentence = wish.name + " has no certificate in PEM";
  return false;
}

}  // namespace

int Revoke(const RevokeWish& wish) {
  const std::string& folder = wish.folder;
  std::string sentence;
  Authority authority;
  if (!ReadAuthority(folder, &authority, &sentence)) return Fail(sentence);
  bool changed = false;
  ListPointer list = ReadList(folder, authority, &changed);
  if (list == nullptr) return Fail(ListPath(folder) + " is no list of this authority");
  Certificates certificates;
  if (!FindCertificates(wish, authority, &certificates, &sentence)) return Fail(sentence);
  std::string said, list_json;
  for (const auto& certificate : certificates) {
    transport::Certificate facts = transport::Describe(certificate.get());
    const std::string it = "'" + Printable(facts.common_name) + "' (serial " + facts.serial + ")";
    X509_REVOKED* entry = nullptr;
    if (X509_verify(certificate.get(), authority.key.get()) != 1) {
      return Fail("the certificate of " + it + " is not of this authority");
    }
    bool before = X509_CRL_get0_by_cert(list.get(), &entry, certificate.get()) == 1;
    if (!before && !Add(list.get(), certificate.get())) return Fail("OpenSSL cannot add " + it);
    changed |= !before;
    said += it + (before ? " was revoked before\n" : " is revoked\n");
    JsonObject object;
    object.Add("name", facts.common_name).Add("serial", facts.serial);
    list_json += (list_json.empty() ? "" : ",") + object.Add("revoked_before", before).Text();
  }
  if (changed && !Sign(list.get(), authority)) return Fail("OpenSSL cannot sign the list");
  if (changed && !WriteList(ListPath(folder), list.get(), &sentence)) return Fail(sentence);
  ERR_clear_error();
  if (wish.json) {
    JsonObject object;
    object.Add("revocations", ListPath(folder));
    object.AddValue("certificates", "[" + list_json + "]").Print();
    return 0;
  }
  std::printf(
      "%s%s: the list of revoked certificates\n"
      "In the configuration of every server, with the path that it has there:\n"
      "tls:\n  revocations: %s\n"
      "A server reads it again when it changes, and ends the sessions of these certificates.\n",
      said.c_str(), ListPath(folder).c_str(), ListPath(folder).c_str());
  return 0;
}

}  // namespace longwire::cli
