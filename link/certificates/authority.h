// A small private authority: makes the certificates by which servers and users know each other.
// Keys are ECDSA on P-256.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "link/certificates/certificate.h"

namespace longwire::certificates {

struct Validity {
  std::time_t from = 0;
  std::time_t until = 0;
};

// From a few minutes ago, as clocks differ, for `days`.
Validity ValidFor(int days);

// PEM texts.
struct Issued {
  std::string certificate;
  std::string key;
};

// Each nullopt with a sentence when a name or the authority is not what it should be.
std::optional<Issued> MakeAuthority(const std::string& name, Validity validity,
                                    std::string* sentence);
// `names` are host names and IP addresses; clients accept the server under these only.
std::optional<Issued> IssueServer(const Issued& authority, const std::vector<std::string>& names,
                                  Validity validity, std::string* sentence);
// The same for a server that shows it to others of its kind, too, such as a member of etcd.
std::optional<Issued> IssuePeer(const Issued& authority, const std::vector<std::string>& names,
                                Validity validity, std::string* sentence);
// `name` is the identity that the server's configuration lists at a tenant.
bool IsIdentityName(const std::string& name, std::string* sentence);
std::optional<Issued> IssueClient(const Issued& authority, const std::string& name,
                                  Validity validity, std::string* sentence);
// The same for somebody who has the private half of `key`: the certificate alone.
std::optional<std::string> CertifyClient(const Issued& authority, EVP_PKEY* key,
                                         const std::string& name, Validity validity,
                                         std::string* sentence);

// A private key. Empty with a sentence.
std::string NewKey(std::string* sentence);

}  // namespace longwire::certificates
