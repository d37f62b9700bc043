// Which certificates are withdrawn: a list in a file (X.509's CRL, PEM) that the authority signed.
#pragma once

#include <string>
#include <utility>

#include "link/certificates/certificate.h"

namespace longwire::signer {

class Revocations {
 public:
  // `file`: read for each question, so that a new list is in force at once. Empty: there is none.
  explicit Revocations(std::string file) : file_(std::move(file)) {}

  // Why this certificate of the authority is not renewed; empty if it is on no list. A file that is
  // not there is an empty list; one that cannot be read, or that the authority did not sign, is a
  // reason.
  std::string Problem(X509* certificate, X509* authority) const;

 private:
  const std::string file_;
};

}  // namespace longwire::signer
