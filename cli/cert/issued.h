// What an authority has issued: each certificate lies in the folder `issued` of the authority's
// own, named by its serial number, also after its file was replaced by a newer one.
#pragma once

#include <string>
#include <vector>

#include "link/certificates/certificate.h"

namespace longwire::cli {

// False with a sentence. `certificate` is PEM.
bool RecordIssued(const std::string& folder, const std::string& certificate, std::string* sentence);

// All certificates for this common name: those recorded, and those beside the authority's own.
std::vector<transport::CertificatePointer> IssuedTo(const std::string& folder,
                                                    const std::string& name);

}  // namespace longwire::cli
