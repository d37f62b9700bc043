// What longwire join leaves for longwire cert renew, and how long both wait for the signer.
#pragma once

#include <chrono>

namespace longwire::cli {

// Beside client.crt: where the signer listens, "host:port", for the next renewal.
inline constexpr const char* kSignerFile = "signer";
// A signer answers in milliseconds; the network may be slow.
inline constexpr std::chrono::seconds kSignerPatience{20};

}  // namespace longwire::cli
