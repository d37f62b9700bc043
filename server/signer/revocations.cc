#include "server/signer/revocations.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "link/certificates/pem_files.h"
#include "wire/guards.h"

namespace longwire::signer {
namespace {

using BioPointer = std::unique_ptr<BIO, decltype(&BIO_free)>;
using ListPointer = std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)>;

const bool kReadsTheList = !wire::GuardIsOff("revoked");

}  // namespace

std::string Revocations::Problem(X509* certificate, X509* authority) const {
  if (file_.empty() || !kReadsTheList) return {};
  if (access(file_.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  std::string sentence;
  auto text = certificates::ReadText(file_, &sentence);
  if (!text) return "the list of revoked certificates cannot be read: " + sentence;
  BioPointer in(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), BIO_free);
  int lists = 0;
  while (X509_CRL* read = PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr)) {
    ListPointer list(read, X509_CRL_free);
    if (X509_CRL_verify(list.get(), X509_get0_pubkey(authority)) != 1) {
      ERR_clear_error();
      return "the list of revoked certificates is not signed by the authority: " + file_;
    }
    ++lists;
    X509_REVOKED* found = nullptr;
    if (X509_CRL_get0_by_cert(list.get(), &found, certificate) == 1) {
      return "the certificate was revoked; ask for a new invitation";
    }
  }
  ERR_clear_error();
  return lists == 0 ? "there is no list of revoked certificates in " + file_ : "";
}

}  // namespace longwire::signer
