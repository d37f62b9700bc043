// Versions of the protocol. In a handshake each side names the range of versions that it speaks,
// and both choose the newest common one. One number covers everything that our processes send to
// each other: openings and views (wire/open.h, wire/view.h), the records and frames behind an
// opening, and the packets between daemon, warden, keepers and workers (server/protocol/hello.h).
// docs/versions.md says which versions can be mixed, and how to add one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/buffer.h"

namespace longwire::wire {

// A range comes from the other side and may be invalid.
struct VersionRange {
  uint32_t oldest = 0;
  uint32_t newest = 0;

  bool IsValid() const { return oldest != 0 && oldest <= newest; }
  bool Has(uint32_t version) const { return oldest <= version && version <= newest; }
  bool operator==(const VersionRange&) const = default;
};

// The last version in which a side sent a single number, or none. A side that sends no range is
// assumed to speak only this version.
inline constexpr uint32_t kLastWithoutRange = 13;
inline constexpr VersionRange kWithoutRange{kLastWithoutRange, kLastWithoutRange};

// The versions that this build speaks.
inline constexpr VersionRange kBuiltVersions{13, 14};

// The versions that this process speaks: those of the build. In test builds LONGWIRE_TEST_VERSIONS
// (OLDEST-NEWEST, or one number) overrides them, so that a test can act as an older version.
VersionRange SpokenVersions();

// True if this process sends ranges. One that acts as version 13 or older does not.
bool SpeaksRanges();

// The versions that both speak; nullopt if there are none, or if a range is invalid.
std::optional<VersionRange> Common(VersionRange one, VersionRange other);
// The newest that both speak; 0 if there is none.
uint32_t NewestCommon(VersionRange one, VersionRange other);

// "protocol 13 to 14", "protocol 13".
std::string VersionsText(VersionRange versions);

// One side of a handshake, for people.
struct Speaker {
  std::string_view who;      // "the client"
  std::string_view upgrade;  // what to upgrade if it is the older side: "Longwire on the client"
  VersionRange versions;
};
// Message: why the two cannot talk to each other, with both ranges and the side to upgrade.
std::string RefusalOf(const Speaker& one, const Speaker& other);

inline constexpr std::string_view kUpgradeClient = "Longwire on the client";
inline constexpr std::string_view kUpgradeServer = "longwired on the server";

// Message: why this process cannot read the reply of a server that speaks `server` and chose the
// version `chosen`; empty if it can. Refusals carry a message of their own, except those of servers
// that send no range.
std::string ProblemOfAnswer(bool refused, uint32_t chosen, VersionRange server);

// Reads the first word of an opening, which tells its kind: kFatal if it is not `expected`.
WireResult DecodeMagic(Reader& reader, uint32_t expected);

// An opening's range is at its end. There it is found without knowing the fields before it, and
// older sides, which stop reading after the fields that they know, ignore it. Sides that speak only
// version 13 write no range: the `number` in the opening's head counts instead.
//
// Rest: the bytes that the reader has left, which are the opening. SkipRest: skips the end of an
// opening that was read, which is its range and any fields of newer sides before it.
std::span<const std::byte> Rest(const Reader& reader);
void SkipRest(Reader& reader);
void EncodeRange(Writer& writer, VersionRange versions);
bool HasRange(std::span<const std::byte> opening);
// Whether a field of this size is left before the range, which is there: older sides send none.
bool HasFieldBeforeRange(const Reader& reader, size_t bytes);
VersionRange RangeOf(std::span<const std::byte> opening, uint32_t number);

// Changes an encoded wire::OpenRequest so that its sender speaks only `versions`, a part of the
// range that it sent. Returned unchanged if it is too short to have a head.
std::vector<std::byte> Narrowed(std::span<const std::byte> request, VersionRange versions);

}  // namespace longwire::wire
