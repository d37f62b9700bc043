#include "wire/versions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "longwire/guard_switches.h"
#include "wire/number.h"

namespace longwire::wire {
namespace {

// "LWV" and a byte that no text has: the strings at the end of other openings cannot look like it.
constexpr uint32_t kRangeMark = 0xff56574c;
constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);  // a magic number, then the version

#if LONGWIRE_GUARD_SWITCHES
VersionRange TestedVersions() {
  const char* text = base::Environment("LONGWIRE_TEST_VERSIONS");
  if (text == nullptr) return kBuiltVersions;
  std::string_view given = text;
  size_t dash = given.find('-');
  auto number = [](std::string_view part) {
    return static_cast<uint32_t>(ParseNumber(std::string(part), 1, INT32_MAX).value_or(0));
  };
  if (dash == std::string_view::npos) return {number(given), number(given)};
  return {number(given.substr(0, dash)), number(given.substr(dash + 1))};
}
#endif

std::string Sentence(const Speaker& one, const Speaker& other) {
  return std::string(one.who) + " speaks " + VersionsText(one.versions) + ", " +
         std::string(other.who) + " " + VersionsText(other.versions);
}

}  // namespace

VersionRange SpokenVersions() {
#if LONGWIRE_GUARD_SWITCHES
  static const VersionRange versions = TestedVersions();
  return versions;
#else
  return kBuiltVersions;
#endif
}

bool SpeaksRanges() { return SpokenVersions().newest > kLastWithoutRange; }

std::optional<VersionRange> Common(VersionRange one, VersionRange other) {
  if (!one.IsValid() || !other.IsValid()) return std::nullopt;
  VersionRange both{std::max(one.oldest, other.oldest), std::min(one.newest, other.newest)};
  if (!both.IsValid()) return std::nullopt;
  return both;
}

uint32_t NewestCommon(VersionRange one, VersionRange other) {
  auto both = Common(one, other);
  return both ? both->newest : 0;
}

std::string VersionsText(VersionRange versions) {
  std::string text = "protocol " + std::to_string(versions.oldest);
  if (versions.newest != versions.oldest) text += " to " + std::to_string(versions.newest);
  return text;
}

std::string RefusalOf(const Speaker& one, const Speaker& other) {
  for (const Speaker* speaker : {&one, &other}) {
    if (speaker->versions.IsValid()) continue;
    const Speaker& good = speaker == &one ? other : one;
    return Sentence(good, *speaker) + ", which is no range: install " +
           std::string(speaker->upgrade) + " anew";
  }
  const Speaker& older = one.versions.newest < other.versions.newest ? one : other;
  return Sentence(one, other) + ": upgrade " + std::string(older.upgrade);
}

std::string ProblemOfAnswer(bool refused, uint32_t chosen, VersionRange server) {
  VersionRange ours = SpokenVersions();
  bool explained = server.newest > kLastWithoutRange || NewestCommon(ours, server) != 0;
  if (refused ? explained : ours.Has(chosen)) return {};
  return RefusalOf({"this client", kUpgradeClient, ours}, {"the server", kUpgradeServer, server});
}

WireResult DecodeMagic(Reader& reader, uint32_t expected) {
  uint32_t magic = 0;
  LW_TRY(reader.U32(&magic));
  return magic == expected ? WireResult::kOk : WireResult::kFatal;
}

std::span<const std::byte> Rest(const Reader& reader) {
  std::span<const std::byte> all;
  Reader copy = reader;
  return copy.View(copy.remaining(), &all) == WireResult::kOk ? all : std::span<const std::byte>();
}

void SkipRest(Reader& reader) {
  std::span<const std::byte> rest;
  (void)reader.View(reader.remaining(), &rest);
}

void EncodeRange(Writer& writer, VersionRange versions) {
  writer.U32(versions.oldest);
  writer.U32(versions.newest);
  writer.U32(kRangeMark);
}

bool HasRange(std::span<const std::byte> opening) {
  uint32_t mark = 0;
  if (opening.size() < kHeadBytes + kRangeBytes) return false;
  std::memcpy(&mark, opening.last(sizeof(mark)).data(), sizeof(mark));
  return mark == kRangeMark;
}

bool HasFieldBeforeRange(const Reader& reader, size_t bytes) {
  return reader.remaining() >= kRangeBytes + bytes;
}

VersionRange RangeOf(std::span<const std::byte> opening, uint32_t number) {
  VersionRange versions{number, number};
  if (!HasRange(opening)) return versions;
  Reader reader(opening.last(kRangeBytes));
  if (reader.U32(&versions.oldest) != WireResult::kOk) return {};
  if (reader.U32(&versions.newest) != WireResult::kOk) return {};
  return versions;
}

std::vector<std::byte> Narrowed(std::span<const std::byte> request, VersionRange versions) {
  std::vector<std::byte> narrowed(request.begin(), request.end());
  if (request.size() < kHeadBytes) return narrowed;
  if (HasRange(request)) narrowed.resize(narrowed.size() - kRangeBytes);
  std::memcpy(narrowed.data() + sizeof(uint32_t), &versions.oldest, sizeof(versions.oldest));
  Writer range;
  if (versions != kWithoutRange) EncodeRange(range, versions);
  narrowed.insert(narrowed.end(), range.span().begin(), range.span().end());
  return narrowed;
}

}  // namespace longwire::wire
