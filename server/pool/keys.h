// The keys of a pool in etcd. H, F: names of hosts; N: the number of a session, hexadecimal.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace longwire::pool {

inline constexpr std::string_view kPrefix = "longwire/";
inline constexpr std::string_view kFormat = "longwire/format";
inline constexpr std::string_view kFormatNow = "1";
inline constexpr std::string_view kPlacer = "longwire/placer";
inline constexpr std::string_view kHosts = "longwire/host/";
inline constexpr std::string_view kDevices = "longwire/gpu/";
inline constexpr std::string_view kCapacities = "longwire/cap/";
inline constexpr std::string_view kLoads = "longwire/load/";
inline constexpr std::string_view kWarm = "longwire/warm/";
inline constexpr std::string_view kClaims = "longwire/claim/";
inline constexpr std::string_view kSessions = "longwire/sess/";
inline constexpr std::string_view kWithdrawn = "longwire/withdrawn/";
// Counts up when etcd was restored from an older copy: what hosts wrote before does not hold.
inline constexpr std::string_view kEpoch = "longwire/epoch";
inline constexpr std::string_view kTenants = "longwire/ten/";
inline constexpr std::string_view kQueue = "longwire/q/";
inline constexpr std::string_view kAnswers = "longwire/ans/";

inline std::string Key(std::string_view folder, std::string_view name) {
  return std::string(folder) + std::string(name);
}
inline std::string Key(std::string_view folder, std::string_view host, std::string_view number) {
  return std::string(folder) + std::string(host) + "/" + std::string(number);
}
// "H" of "cap/H", "N" of "claim/H/N".
inline std::string LastPart(std::string_view key) {
  return std::string(key.substr(key.rfind('/') + 1));
}
// "H" of "claim/H/N".
inline std::string MiddlePart(std::string_view folder, std::string_view key) {
  key.remove_prefix(folder.size());
  return std::string(key.substr(0, key.find('/')));
}

// Of records that say in `format` what their readers have to know.
inline constexpr uint32_t kRecordFormat = 2;  // that this version knows
inline constexpr uint32_t kUsualFormat = 1;   // of most records
inline constexpr uint32_t kFormatAlone = 2;   // of cap/H while a session has devices to itself

// A record as it stands in etcd, and back; false when it is none. Members that this version does
// not know stay with those that have a field for them (unknown_members.h).
std::string Encode(const google::protobuf::Message& record);
bool Decode(const std::string& text, google::protobuf::Message* record);

// Of a program on several hosts: the number of its session at the place'th of them, from 0 on.
std::string NumberOfPlace(std::string_view number, size_t place);
// Lower-case hexadecimal digits and '-', 1 to 64.
bool IsNumber(std::string_view text);
// SHA-256 in hexadecimal.
std::string HashOf(std::string_view ticket);
// Random hexadecimal digits for `bytes`; empty when the system has none.
std::string RandomHex(size_t bytes);

}  // namespace longwire::pool
