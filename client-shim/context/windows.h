// The windows: ranges of addresses in which devices' memory lies, the same in this process and the
// worker. Here they are mapped without access, so no device pointer is a valid host pointer.
#pragma once

#include <string>
#include <vector>

#include "client-shim/connect/options.h"
#include "wire/open.h"

namespace longwire::shim {

// Reserves the candidates that are free in this process, best first. If there is none, *sentence
// says why.
std::vector<wire::Window> ReserveCandidates(const Options& options, std::string* sentence);

// Before TakePromised: whether the server may have more of the candidates than the devices'
// windows. Not where such a limit leaves the program only half of its addresses.
bool MayKeepMore();

// Where a limit on the process's addresses allowed no candidate to stay reserved, reserves the ones
// that the server chose. False if that is no longer possible.
bool TakePromised(const std::vector<wire::Window>& used);

// Releases the reserved addresses that lie in none of `used`.
void ReleaseUnused(std::vector<wire::Window> used);

}  // namespace longwire::shim
