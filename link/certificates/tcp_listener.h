// Listens over TCP, and accepts.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "link/certificates/address.h"
#include "wire/descriptors.h"

namespace longwire::transport {

// An IPv4 address that came over IPv6 is an IPv4 address.
Address AddressOf(const sockaddr_storage& storage);
// Where a socket listens.
Address BoundAddress(int socket);

// Sockets that listen at all of what the host's name stands for and this host has; none with a
// sentence. Accepted sockets send at once. `program`: what else may listen there.
std::vector<wire::Descriptor> ListenTcp(const Address& address, int backlog,
                                        const std::string& program, std::string* sentence);

// The next connection, which does not wait, and where it is from; invalid if there is none, with
// errno 0, or if the process lacks descriptors: then after a pause.
wire::Descriptor AcceptTcp(int listener, sockaddr_storage* from);

}  // namespace longwire::transport
