// Bridges: the ways on which copies' bytes go from one of the program's servers to another without
// passing this process. A bridge joins lanes of the one session to lanes of the other
// (wire/open.h). This process carries the ticket over, and says for each copy what goes and comes.
//
// A bridge that breaks is mended, and the copies on it go on where they were. One that cannot be
// mended in time ends, and the copies on it fail. Where there never was one, because the servers do
// not reach each other, copies pass this process.
//
// One thread makes copies between servers (stream/callbacks.cc); only it uses bridges.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client-shim/session/session.h"

namespace longwire::shim {

// What is asked for at the opening: how many lanes for each of the other servers.
uint32_t BridgeLanesFor(int servers, uint32_t own_lanes);

// Whether copies over bridges are announced as a whole, and bytes wait in the bridge's lanes for
// the receiver. Else in pieces, which this process holds back by the receiver's upload window.
bool HasWholeCopies();

// Connects the two if they are not yet. False if there is no way between them.
bool HasBridge(ClientSession& from, ClientSession& to);

// The number by which the first session knows its bridge to the second.
uint32_t BridgeNumber(const ClientSession& of, const ClientSession& to);

// Waits until `done`, which becomes true by what `to` reports. False if `failed`, or the bridge
// cannot be mended any more; then it has ended for both.
bool AwaitOverBridge(ClientSession& from, ClientSession& to, FunctionRef<bool()> done,
                     FunctionRef<bool()> failed);

// Nothing goes over it any more: both servers fail what waits for it.
void EndBridge(ClientSession& from, ClientSession& to);

// For the program's summary: a sentence for each pair of servers without a way between them.
std::vector<std::string> MissingBridges();
// And where the pieces of the others' copies have spent their time at that server; empty if none
// came or went there, or none is said in time. A round trip.
std::string BridgeFigures(ClientSession& session);

}  // namespace longwire::shim
