// What the operator has withdrawn from new sessions, by `longwire admin drain` and `cordon`. It is
// kept in a file beside the warden's socket, so that it holds for the next longwired of this boot.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace longwire::daemon {

struct Withdrawn {
  bool server = false;        // drained
  std::set<int32_t> devices;  // cordoned
  bool operator==(const Withdrawn&) const = default;
};

std::string WithdrawnPath(const std::string& warden_socket);
// Nothing is withdrawn if there is no such file; nullopt with a sentence if it cannot be
// understood.
std::optional<Withdrawn> ReadWithdrawn(const std::string& path, std::string* sentence);
// Replaces the file at once, or leaves it as it was and returns false; errno says why.
bool WriteWithdrawn(const std::string& path, const Withdrawn& withdrawn);

}  // namespace longwire::daemon
