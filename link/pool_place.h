// What a link says to a server that is in a pool: which session it asks a place for.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "proto/transport.pb.h"
#include "wire/places.h"

namespace longwire::link {

// Names the session and its ticket, and further ones where the program takes several places. A
// program that waits for room has a number of its own in its opening request, which stays the same
// when it asks again: so it keeps its place in the queue.
void AskForPlace(std::span<const std::byte> opening, transport::OpenSessionRequest* request);
// The same for another attempt, after hosts that did not open it.
void AskForAnotherPlace(int attempt, transport::OpenSessionRequest* request);

// Where the program is to open its sessions, with the tickets that the request named. None if the
// server has not answered with places that go with it.
wire::PlaceList PlacesOf(const transport::OpenSessionRequest& request,
                         const transport::OpenSessionReply& reply);

}  // namespace longwire::link
