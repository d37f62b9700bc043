// Which registers of a probe hold which constants: to find out of which map a call is. Of code that
// only jumps forward.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "policy/hook_code.h"

namespace longwire::probe {

class Constants {
 public:
  explicit Constants(const policy::HookCode& code);

  // Before and behind each instruction, in order.
  void Reach(uint32_t at);
  void Step(uint32_t at);

  std::optional<uint64_t> Get(unsigned number) const { return known_[number]; }
  // Whether a jump leads to the instruction.
  bool IsTarget(uint32_t at) const { return targets_.contains(at); }

 private:
  using Known = std::array<std::optional<uint64_t>, 16>;
  void Pass(uint32_t to);
  static void Join(Known* known, const Known& other);

  const policy::HookCode& code_;
  std::set<uint32_t> targets_;
  std::map<uint32_t, Known> waiting_;  // what jumps bring to an instruction
  Known known_;
  bool goes_on_ = true;  // from the instruction before
};

}  // namespace longwire::probe
