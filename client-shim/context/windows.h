// The ranges of addresses in which devices' memory lies: the same in this process and the worker.
// Here they are mapped without any access: a device pointer is never a host pointer.
#pragma once

#include <string>
#include <vector>

#include "client-shim/door/options.h"
#include "wire/open.h"

namespace longwire::shim {

// Reserves the candidates that are free in this process, best first. None with a sentence.
std::vector<wire::Window> ReserveCandidates(const Options& options, std::string* sentence);

// What the server has chosen of them is reserved from here on, where a limit let no more than one
// of them be so before. False when that is not possible any more.
bool TakePromised(const std::vector<wire::Window>& used);

// Gives back what lies in none of `used`.
void ReleaseUnused(const std::vector<wire::Window>& used);

}  // namespace longwire::shim
