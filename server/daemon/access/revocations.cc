#include "server/daemon/access/revocations.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <utility>

#include "link/transport/log.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// A list with 100,000 certificates takes less.
constexpr size_t kMaxFileBytes = 16 << 20;

bool ReadFile(const std::string& path, std::string* text, std::string* sentence) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0 || static_cast<size_t>(size) > kMaxFileBytes) {
    *sentence = size < 0 ? "cannot read " + path
                         : path + " is too large for a list of revoked certificates";
    return false;
  }
  text->resize(static_cast<size_t>(size));
  file.seekg(0);
  file.read(text->data(), size);
  if (file) return true;
  *sentence = "cannot read " + path;
  return false;
}

// Whether one of the authorities has signed the list.
bool IsSigned(X509_CRL* list, const std::vector<transport::CertificatePointer>& authorities) {
  for (const auto& authority : authorities) {
    bool named =
        X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority.get())) == 0;
    if (named && X509_CRL_verify(list, X509_get0_pubkey(authority.get())) == 1) return true;
  }
  return false;
}

std::string DateOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "a date that cannot be read";
  return transport::DateText(timegm(&parts));
}

}  // namespace

void RevocationLists::Deleter::operator()(X509_CRL* list) const { X509_CRL_free(list); }

std::shared_ptr<const RevocationLists> RevocationLists::Read(const std::string& path,
                                                             std::string_view authority,
                                                             std::string* sentence) {
  std::string text;
  if (!ReadFile(path, &text, sentence)) return nullptr;
  auto authorities = transport::ParseCertificates(authority);
  auto made = std::make_shared<RevocationLists>();
  std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  while (X509_CRL* list = PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr)) {
    made->lists_.emplace_back(list);
    if (IsSigned(list, authorities)) continue;
    ERR_clear_error();
    *sentence =
        path + " has a list of revoked certificates that the server's authority did not sign";
    return nullptr;
  }
  // The end of the file is the one good reason to stop.
  bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!made->lists_.empty() && whole) return made;
  *sentence =
      path + " has no list of revoked certificates (CRL) in PEM; longwire cert revoke makes one";
  return nullptr;
}

std::string RevocationLists::Refusal(std::string_view chain) const {
  for (const auto& certificate : transport::ParseCertificates(chain)) {
    for (const auto& list : lists_) {
      X509_REVOKED* entry = nullptr;
      // It compares the issuer, too. 2: taken off the list again.
      if (X509_CRL_get0_by_cert(list.get(), &entry, certificate.get()) != 1) continue;
      transport::Certificate facts = transport::Describe(certificate.get());
      return "the certificate of '" + facts.common_name + "' (serial " + facts.serial +
             ") was revoked on " + DateOf(X509_REVOKED_get0_revocationDate(entry));
    }
  }
  return {};
}

size_t RevocationLists::size() const {
  size_t count = 0;
  for (const auto& list : lists_) {
    int entries = sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list.get()));
    count += entries > 0 ? static_cast<size_t>(entries) : 0;
  }
  return count;
}

Revocations::Version Revocations::VersionOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

bool Revocations::Prepare(const config::Config& config, Prepared* prepared, std::string* sentence) {
  *prepared = {};
  if (!config.tls().has_revocations()) return true;
  prepared->path = config.tls().revocations();
  // Before it is read: a change meanwhile is noticed the next time.
  prepared->version = VersionOf(prepared->path);
  if (!ReadFile(config.tls().authority(), &prepared->authority, sentence)) return false;
  prepared->lists = RevocationLists::Read(prepared->path, prepared->authority, sentence);
  return prepared->lists != nullptr;
}

void Revocations::Use(Prepared prepared) {
  if (prepared.lists != nullptr) {
    Log(LogLevel::kInfo,
        std::to_string(prepared.lists->size()) + " revoked certificates in " + prepared.path);
  }
  base::MutexLock lock(mutex_);
  now_ = std::move(prepared);
}

bool Revocations::ReadAgain() {
  Prepared next;
  {
    base::MutexLock lock(mutex_);
    if (now_.path.empty()) return false;
    Version version = VersionOf(now_.path);
    if (version == now_.version) return false;
    now_.version = version;
    next = now_;
  }
  std::string sentence;
  next.lists = RevocationLists::Read(next.path, next.authority, &sentence);
  if (next.lists == nullptr) {
    Log(LogLevel::kError, sentence + "; the certificates that were revoked before stay so");
    return false;
  }
  Log(LogLevel::kInfo, std::to_string(next.lists->size()) + " revoked certificates in " +
                           next.path + ", read again");
  base::MutexLock lock(mutex_);
  if (now_.path != next.path || now_.authority != next.authority) return false;  // reloaded since
  now_ = std::move(next);
  return true;
}

std::string Revocations::path() {
  base::MutexLock lock(mutex_);
  return now_.path;
}

std::string Revocations::Refusal(std::string_view chain) {
  std::shared_ptr<const RevocationLists> lists;
  {
    base::MutexLock lock(mutex_);
    lists = now_.lists;
  }
  if (lists == nullptr || chain.empty() || wire::GuardIsOff("revocation")) return {};
  return lists->Refusal(chain);
}

}  // namespace longwire::daemon
