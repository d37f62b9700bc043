// What an administrator does to a host of the pool: nothing new is placed there, and what runs
// there ends, at a deadline at last.
#pragma once

#include <cstdint>
#include <string>

#include "server/etcd/client.h"

namespace longwire::pool {

enum class Service { kCordon, kDrain, kBack };

struct WithdrawalWish {
  std::string host;
  Service service = Service::kCordon;
  uint64_t seconds = 0;  // of kDrain; 0: without a deadline
  std::string by;        // who says so
};

// True: it is in etcd, nothing that was planned before is placed there any more, and *sentence says
// what holds now. Else it says why not, and nothing has changed.
bool Withdraw(etcd::Client& client, const WithdrawalWish& wish, std::string* sentence);

}  // namespace longwire::pool
