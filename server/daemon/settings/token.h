// Resume tokens: 256 random bits, kept only as their hash, compared in constant time.
#pragma once

#include <array>
#include <cstdint>

#include "link/transport/frame.h"

namespace longwire::daemon {

using TokenHash = std::array<unsigned char, 32>;

// False when the system has no random bytes.
bool NewToken(transport::Token* token);
TokenHash HashToken(const transport::Token& token);
bool TokenMatches(const transport::Token& token, const TokenHash& hash);

}  // namespace longwire::daemon
