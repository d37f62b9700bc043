// The claims of a program that is placed, at one host or several, and the answer about them.
#pragma once

#include <string>
#include <vector>

#include "server/etcd/client.h"
#include "server/pool/directory.h"

namespace longwire::pool {

struct NewClaim {
  std::string host;
  std::string number;
  Claim claim;
};

std::vector<NewClaim> NewClaimsOf(const Directory& directory, const Waiter& waiter,
                                  const scheduler::pool::Decision& decision);
// Into the transaction: the claim and its session's owner, where neither is there yet.
void Write(const NewClaim& claim, etcd::pb::TxnRequest* request);
void TellPlaces(const Directory& directory, const std::vector<NewClaim>& claims, Answer* answer);
// Of a session that is to move: why the place that it has is not its own; empty: it is.
std::string WhyNotFrom(const Directory& directory, const Waiter& waiter);
// The same again, for who did not hear that it has its place, at `owner`. False if that is another
// program's, or not there any more.
bool AnswerOf(const Directory& directory, const Waiter& waiter, const std::string& owner,
              Answer* answer);

}  // namespace longwire::pool
