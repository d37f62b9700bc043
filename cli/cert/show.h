// longwire cert show.
#pragma once

#include <string>

namespace longwire::cli {

// Prints what each certificate of the file says; the exit status.
int ShowCertificate(const std::string& path, bool json);

}  // namespace longwire::cli
