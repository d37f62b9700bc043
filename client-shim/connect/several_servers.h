// A program with devices of several servers (LONGWIRE_ACROSS): which servers, and how their devices
// are told apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "client-shim/connect/options.h"
#include "wire/places.h"

namespace longwire::shim {

// One for each server whose devices the program gets: the options with that server alone. Without
// LONGWIRE_ACROSS that is one. Empty if there can be no such program; *sentence says why.
std::vector<Options> ServersOf(const Options& options, std::string* sentence);

// Likewise for a program that a pool has placed on several hosts, which have to open it now.
std::vector<Options> ServersAt(const Options& options, const std::vector<wire::Place>& places);

// The PCI domain of a device, different for every server: hosts number their buses alike.
int DomainAt(int server, int domain);

using Uuid = std::array<uint8_t, 16>;
// Gives the device of a further server another UUID if an earlier one has this: software devices
// of two servers have the same. `taken` has the earlier ones, and gets this one.
void MakeUnlike(std::vector<Uuid>* taken, Uuid* uuid);

}  // namespace longwire::shim
