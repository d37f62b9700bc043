// Certificates that their authority has taken back: the file of lists (X.509 CRLs in PEM) that the
// key tls.revocations names.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/certificates/certificate.h"
#include "proto/config.pb.h"

typedef struct X509_crl_st X509_CRL;

namespace longwire::daemon {

// The content of one file. Constant, so thread-safe.
class RevocationLists {
 public:
  // nullptr with a sentence when the file has no list, or one that no certificate of `authority`
  // (PEM) has signed.
  static std::shared_ptr<const RevocationLists> Read(const std::string& path,
                                                     std::string_view authority,
                                                     std::string* sentence);

  // Says when a certificate of the chain (PEM, the client's own first) was revoked; empty when none
  // was.
  std::string Refusal(std::string_view chain) const;
  size_t size() const;  // revoked certificates

 private:
  struct Deleter {
    void operator()(X509_CRL* list) const;
  };
  std::vector<std::unique_ptr<X509_CRL, Deleter>> lists_;
};

// The lists in force. Thread-safe.
class Revocations {
 public:
  // By which a replaced file is noticed.
  struct Version {
    ino_t number = 0;
    off_t size = 0;
    time_t seconds = 0;
    long nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };
  struct Prepared {
    std::string path;       // empty: nothing is revoked
    std::string authority;  // PEM
    Version version;
    std::shared_ptr<const RevocationLists> lists;
  };
  // Reads what the configuration names. False with a sentence when a file is invalid.
  static bool Prepare(const config::Config& config, Prepared* prepared, std::string* sentence);
  void Use(Prepared prepared);

  // Reads the file again if it is another one than before; true if other lists are in force then.
  // With an invalid file the lists stay, and the log says so.
  bool ReadAgain();
  // The file; empty when there is none.
  std::string path();

  // As RevocationLists::Refusal.
  std::string Refusal(std::string_view chain);

 private:
  static Version VersionOf(const std::string& path);

  base::Mutex mutex_{base::ranks::kRevocations};
  Prepared now_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
