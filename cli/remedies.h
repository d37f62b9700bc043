// What to do about what a sentence of ours says: of the link, the server or the client's library.
#pragma once

#include <string>

namespace longwire::cli {

// `otherwise`: what to do about sentences that are not known.
std::string RemedyFor(const std::string& sentence, const std::string& otherwise);

}  // namespace longwire::cli
