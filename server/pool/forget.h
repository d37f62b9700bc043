// What an administrator does to a pool.
#pragma once

#include <string>

#include "server/etcd/client.h"

namespace longwire::pool {

// Gives up a host that is gone for good: its claims, its devices, what it had. Refused with a
// sentence while the host is in the pool. True: *sentence says what was done.
bool Forget(etcd::Client& client, const std::string& host, std::string* sentence);

}  // namespace longwire::pool
