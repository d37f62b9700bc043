// Versions of the protocol. Each side of a handshake says from which to which it speaks, and both
// choose the newest that they have in common. One number counts for all that our processes say to
// each other: openings and views (wire/open.h, wire/view.h), the records and frames behind an
// opening, and the packets between daemon, warden, keepers and workers (server/keeper/hello.h).
// docs/versions.md says what may be mixed, and how a version is added.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/buffer.h"

namespace longwire::wire {

// Nothing about a range is taken for granted: it comes from the other side.
struct VersionRange {
  uint32_t oldest = 0;
  uint32_t newest = 0;

  bool IsValid() const { return oldest != 0 && oldest <= newest; }
  bool Has(uint32_t version) const { return oldest <= version && version <= newest; }
  bool operator==(const VersionRange&) const = default;
};

// The last version whose sides named a single number, or none at all. A side that names no range is
// taken to speak this one alone.
inline constexpr uint32_t kLastWithoutRange = 13;
inline constexpr VersionRange kWithoutRange{kLastWithoutRange, kLastWithoutRange};

// What this build speaks.
inline constexpr VersionRange kBuiltVersions{13, 14};

// What this process speaks: what it was built for. In builds for tests LONGWIRE_TEST_VERSIONS
// (OLDEST-NEWEST, or one number) says otherwise: so the versions before are played.
VersionRange SpokenVersions();

// Whether this process names ranges. One that plays a version from before does not.
bool SpeaksRanges();

// What both speak; nullopt if nothing, or if one of the two is no range.
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
// Why the two have nothing to say to each other, with both ranges and which side to upgrade.
std::string RefusalOf(const Speaker& one, const Speaker& other);

inline constexpr std::string_view kUpgradeClient = "Longwire on the client";
inline constexpr std::string_view kUpgradeServer = "longwired on the server";

// For who has an answer of a server's, which speaks `server` and chose `chosen` unless it refused:
// why this process does not understand it; empty if it does. A refusal says so itself, but for one
// of a server that knows no ranges.
std::string ProblemOfAnswer(bool refused, uint32_t chosen, VersionRange server);

// An opening's range stands at its end: where it is found without knowing what lies between, and
// where sides of before, which read no further than they know, do not see it. Sides that speak
// version 13 alone write none: then it is the `number` in the opening's head.
// What a reader has left, which is the opening; and the end of one that was read, with its range
// and what newer sides put before it.
std::span<const std::byte> Rest(const Reader& reader);
void SkipRest(Reader& reader);
void EncodeRange(Writer& writer, VersionRange versions);
bool HasRange(std::span<const std::byte> opening);
VersionRange RangeOf(std::span<const std::byte> opening, uint32_t number);

// An encoded wire::OpenRequest, given on as one of a sender who speaks `versions` alone. These are
// some of its own. Returned unchanged if it is too short to have a head.
std::vector<std::byte> Narrowed(std::span<const std::byte> request, VersionRange versions);

}  // namespace longwire::wire
