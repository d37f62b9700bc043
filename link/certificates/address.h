// Addresses as people type them: "host:port", "host", "[v6]:port"; the default port is the
// daemon's, 7411.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/limits.h"

namespace longwire::transport {

struct Address {
  std::string host;
  uint16_t port = 0;
  std::string Text() const;  // "host:port", "[v6]:port"
};

// nullopt with a sentence in *problem.
std::optional<Address> ParseAddress(std::string_view text, std::string* problem,
                                    uint16_t default_port = wire::kDefaultPort);
// A comma list.
std::optional<std::vector<Address>> ParseAddresses(std::string_view text, std::string* problem,
                                                   uint16_t default_port = wire::kDefaultPort);
// True for names and numbers that reach this host only.
bool IsLoopback(const Address& address);

}  // namespace longwire::transport
