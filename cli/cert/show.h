// longwire cert show.
#pragma once

#include <string>

namespace longwire::cli {

// Prints what each certificate of the file says; the exit status.
int ShowCertificate(const std::string& path);

}  // namespace longwire::cli
