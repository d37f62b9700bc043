// What a link answers instead of an OpenReply when a pool of servers has placed a program on
// several hosts: the program opens a session at each. Only to programs that have said kOverHosts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/buffer.h"

namespace longwire::wire {

// Entries of OpenRequest::environment, for the link. The program takes several places:
inline constexpr const char* kOverHosts = "LONGWIRE_OVER_HOSTS=1";
// It has this one, as Place::Text has it; the request goes to its server alone:
inline constexpr std::string_view kPlaceVariable = "LONGWIRE_PLACE=";
// Hosts, with commas between, that did not open sessions which were placed there:
inline constexpr std::string_view kAvoidVariable = "LONGWIRE_AVOID=";

struct Place {
  std::string host;     // its name in the pool
  std::string address;  // HOST:PORT
  std::string number;   // of the session there
  std::string ticket;   // bytes: proves the right to it, once
  uint32_t devices = 0;

  // Number and ticket.
  std::string Text() const;
};

// False if it is no such text.
bool ReadPlace(std::string_view text, std::string* number, std::string* ticket);

struct PlaceList {
  std::vector<Place> places;  // 2 to kMaxServers

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

bool IsPlaces(std::span<const std::byte> message);

}  // namespace longwire::wire
