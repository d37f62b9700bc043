// What an authority has issued: each certificate lies in the folder `issued` of the authority's
// own, named by its serial number, also after its file was replaced by a newer one. Those that
// longwire-signer has signed lie in a folder of the signer's.
#pragma once

#include <string>
#include <vector>

#include "link/certificates/certificate.h"

namespace longwire::cli {

// False with a sentence. `certificate` is PEM.
bool RecordIssued(const std::string& folder, const std::string& certificate, std::string* sentence);

// Where a signer keeps them by default; empty if there is nothing.
std::string UsualSignersFolder();

// All certificates for this common name in these folders: of `folder` those recorded, and those
// beside the authority's own. `signers`: the signer's, or empty. False with a sentence if that
// cannot be read: then `found` has the others.
bool FindIssued(const std::string& folder, const std::string& signers, const std::string& name,
                std::vector<transport::CertificatePointer>* found, std::string* sentence);

}  // namespace longwire::cli
