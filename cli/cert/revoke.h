// longwire cert revoke: the list of certificates that the authority has taken back (CRL).
#pragma once

#include <string>

namespace longwire::cli {

// Adds all certificates for `name` to the list in the authority's folder; `name` may also be the
// file of one certificate. Empty: only makes the list, if there is none. The exit status, with a
// sentence on standard error if it is not 0.
int Revoke(const std::string& folder, const std::string& name);

}  // namespace longwire::cli
