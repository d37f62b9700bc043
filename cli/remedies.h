// Remedies for error sentences of the link, the server or the client's library.
#pragma once

#include <string>

namespace longwire::cli {

// `otherwise`: the remedy for unknown sentences.
std::string RemedyFor(const std::string& sentence, const std::string& otherwise);

}  // namespace longwire::cli
