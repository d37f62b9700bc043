#include "link/certificates/address.h"

#include <arpa/inet.h>

#include <charconv>

namespace longwire::transport {
namespace {

// What people write who know addresses of another kind; empty if this is none of them.
std::string OtherKind(std::string_view text) {
  const std::string all(text);
  size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    std::string rest(text.substr(scheme + 3));
    while (rest.ends_with('/')) rest.pop_back();
    return "'" + all + "' is a URL; write " + rest;
  }
  if (text.starts_with('/') || text.starts_with("./")) {
    return "'" + all + "' is a path; write unix:" + all + " for the local socket of a server";
  }
  return "";
}

}  // namespace

std::string Address::Text() const {
  bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<Address> ParseAddress(std::string_view text, std::string* problem,
                                    uint16_t default_port) {
  Address address;
  std::string_view port;
  bool has_port = false;
  *problem = OtherKind(text);
  if (!problem->empty()) return std::nullopt;
  if (!text.empty() && text.front() == '[') {
    size_t end = text.find(']');
    if (end == std::string_view::npos) {
      *problem = "'" + std::string(text) + "' has a [ without a ]";
      return std::nullopt;
    }
    address.host = text.substr(1, end - 1);
    if (end + 1 < text.size() && text[end + 1] != ':') {
      *problem = "'" + std::string(text) + "' has something other than :port after the ]";
      return std::nullopt;
    }
    has_port = end + 1 < text.size();
    if (has_port) port = text.substr(end + 2);
  } else {
    size_t colon = text.find(':');
    if (colon != text.rfind(':')) {
      *problem =
          "'" + std::string(text) + "' has several colons; write an IPv6 address as [::1]:port";
      return std::nullopt;
    }
    address.host = text.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  if (address.host.empty()) {
    *problem = "'" + std::string(text) + "' names no host; write host:port";
    return std::nullopt;
  }
  if (!has_port) {
    address.port = default_port;
    return address;
  }
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    *problem = "'" + std::string(port) + "' in '" + std::string(text) +
               "' is no port; it is a number from 0 to 65535";
    return std::nullopt;
  }
  return address;
}

std::optional<std::vector<Address>> ParseAddresses(std::string_view text, std::string* problem,
                                                   uint16_t default_port) {
  std::vector<Address> addresses;
  while (true) {
    size_t comma = text.find(',');
    std::optional<Address> address = ParseAddress(text.substr(0, comma), problem, default_port);
    if (!address) return std::nullopt;
    addresses.push_back(std::move(*address));
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

bool IsLoopback(const Address& address) {
  if (address.host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace longwire::transport
