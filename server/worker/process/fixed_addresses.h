// Workers in which the driver puts things where it puts them in every other one, so that a session
// can move from one to the other (docs/moving.md).
#pragma once

#include <span>

namespace longwire::worker {

// First thing in main. If the options (also those in the file of the settings) ask for fixed
// addresses, and they are randomised: starts the program anew without that. Where it cannot, it
// goes on with randomised ones.
void FixAddresses(std::span<char*> words);
bool HasFixedAddresses();

}  // namespace longwire::worker
