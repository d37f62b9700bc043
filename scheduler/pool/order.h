// The order in which wishes are looked at: by class; within one, of the tenant that has least of
// the pool for its weight the oldest. What it asks for is not counted: a large one comes no later
// than small ones.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {

class Order {
 public:
  // `first`: numbers that come before the others of their class. `turns`: of tenants that have as
  // much, the one that was served longest ago comes first.
  Order(const std::vector<HostState>& hosts, const std::vector<Wish>& wishes, const Turns& turns,
        const std::set<std::string>& first, uint64_t patience);

  // Index of the next one; nullopt: that was the last.
  std::optional<size_t> Next();
  // It is as if its tenant had that, too.
  void Charge(const Wish& wish);

 private:
  struct Line {
    std::vector<size_t> wishes;  // by age
    size_t next = 0;             // of these
    uint64_t served = 0;
    Held held;
  };
  using Lines = std::map<std::string, Line>;  // by tenant
  // Of the pool's memory or sessions, whichever is larger.
  double PartOf(const Held& held) const;
  bool ComesBefore(const Line& one, const Line& other) const;

  const std::vector<Wish>& wishes_;
  std::map<std::string, Held> held_;  // by tenant
  Held all_;
  std::map<std::pair<int64_t, bool>, Lines> classes_;  // the highest first, in it those of `first`
};

}  // namespace longwire::scheduler::pool
