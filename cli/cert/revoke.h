// longwire cert revoke: the list of certificates that the authority has taken back (CRL).
#pragma once

#include <string>

namespace longwire::cli {

struct RevokeWish {
  std::string folder;  // the authority's
  std::string name;
  std::string issued;  // the signer's folder of what it has issued; empty: the usual one, if any
  bool json = false;
};

// Adds all certificates for the name to the list in the authority's folder; it may also be the
// file of one certificate. Empty: only makes the list, if there is none. The exit status, with a
// sentence on standard error if it is not 0.
int Revoke(const RevokeWish& wish);

}  // namespace longwire::cli
